package dataplane

import "time"

// shedding decides for how many parts of its flows a Divider diverts what comes behind a hole, by
// what the reader has time for. A reader that is too slow puts no order into anything: TCP sees
// long round trips, sends small segments, and these cost the reader even more. So what it has no
// time for goes to the kernel in whatever order it comes, as without weft at the receiver.
//
// It works like TCP's congestion control. The sign of congestion is CoDel's: a queue in the
// reader's socket that has not been empty for a while (RFC 8289 §3.1). Then the parts become
// fewer by a quarter, those first that were diverted longest. While the queue empties now and
// then, they become more, one by one. So all parts have their turn. shedding belongs to the
// reader, and is pure.
type shedding struct {
	all, parts int
	from       int           // the first of the parts
	changed    time.Duration // when the parts were looked at for becoming more, or became fewer
	standing   bool          // the last read left a queue
	since      time.Duration // the first of such reads in a row
}

const (
	// shedAfter is how long a queue stands before flows are shed, and again before more are. It
	// takes some round trips until TCP has slowed down.
	shedAfter = 100 * time.Millisecond
	// shedRaise is the time between two parts that come back.
	shedRaise = 20 * time.Millisecond
)

func newShedding(parts int) shedding { return shedding{all: parts, parts: parts} }

// read takes note of a read. empty says that it found nothing at first, or less than it had room
// for. It reports whether other parts are to be diverted from now on.
func (s *shedding) read(empty bool, now time.Duration) (news bool) {
	was := s.parts
	switch {
	case empty:
		s.standing = false
		n := int((now - s.changed) / shedRaise)
		s.parts = min(s.parts+n, s.all)
		s.changed += time.Duration(n) * shedRaise
	case !s.standing:
		s.standing, s.since = true, now
	case now-max(s.since, s.changed) >= shedAfter:
		s.changed = now
		s.parts = s.parts * 3 / 4
		s.from = (s.from + was - s.parts) % s.all
	}
	return s.parts != was
}
