package dataplane

import "time"

// standing is the queue that a reader has found in its source each time of late. It belongs to
// the reader. The zero value is an empty queue.
type standing struct {
	queue bool
	since time.Duration // if there is one: when it was seen first
}

// read takes note of a read. empty says that it found nothing at first, or less than it had room
// for.
func (s *standing) read(empty bool, now time.Duration) {
	if empty {
		s.queue = false
	} else if !s.queue {
		s.queue, s.since = true, now
	}
}

// behind is how much later a hole ends while a queue stands, at most. A reader that has filled all
// its room, and then finds no more, seems to have a queue until it reads again.
const behind = time.Millisecond

// holds returns the time by which holes end. What fills a hole may wait in the queue, so that a
// slow reader must not take it for lost.
func (s *standing) holds(now time.Duration) time.Duration {
	if !s.queue {
		return now
	}
	return max(s.since, now-behind)
}
