package tcp

import (
	"math"
	"time"

	"gvisor.dev/gvisor/pkg/sync"
	"gvisor.dev/gvisor/pkg/tcpip"
)

const (
	// latenessHalf is in which time a lateness counts half.
	latenessHalf = time.Second

	// onTime is how late a timer may be without waiting for a processor.
	onTime = time.Millisecond
)

// lateness is how late timers have run lately: what this process waits for a processor. It
// is for concurrent use.
type lateness struct {
	mu sync.Mutex
	// +checklocks:mu
	most time.Duration
	// +checklocks:mu
	at tcpip.MonotonicTime // of most
}

// note takes by how much a timer is late and returns the most of late, in which an older one
// counts less.
func (l *lateness) note(now tcpip.MonotonicTime, late time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if age := now.Sub(l.at); age > 0 {
		l.most = time.Duration(float64(l.most) * math.Exp2(-float64(age)/float64(latenessHalf)))
		l.at = now
	}
	l.most = max(l.most, late)
	return l.most
}

// patience returns how much longer the retransmit timer, which has expired, runs before that
// counts as a timeout. Where timers are late, acknowledgements are, too: those that wait to be
// read, and those of peers that wait for the same processors. As RFC 6298 has it for round trips,
// four times the deviation counts, at most MinRTO in all. A process that has stood still for
// longer first gets the time to read what has come meanwhile.
// +checklocks:s.ep.mu
func (s *sender) patience() time.Duration {
	t := &s.resendTimer
	now := s.ep.stack.Clock().NowMonotonic()
	late := now.Sub(t.target)
	most := s.ep.protocol.late.note(now, late)
	if most < onTime {
		return 0
	}
	wait := t.due.Add(min(4*most, MinRTO)).Sub(now)
	if t.target == t.due { // not extended yet
		wait = max(wait, min(late, s.minRTO))
	}
	return wait
}
