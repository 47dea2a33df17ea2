package topoupdate

import "time"

const (
	// maxDoublings bounds how much longer a neighbour may be silent that has been late.
	maxDoublings = 4
	// A neighbour that is heard within so many detection times, and within soonAtLeast, was
	// late rather than gone.
	soonDetections = 8
	soonAtLeast    = time.Second
	// patienceLasts is when a neighbour that is late no more has its former time again.
	patienceLasts = time.Minute
)

// patience is how much longer than agreed a neighbour may be silent, because it has only
// been late before. A switch whose processor is busy says its hellos late. Each time that it
// is taken for dead, the fabric does without a link for as long as Damping says, and all
// switches have more to do. Where many are late at once, that feeds itself, and a fabric
// whose links all work falls apart. So a neighbour that proves the link again soon has twice
// the time from then on. A first failure is found as fast as ever.
type patience struct {
	doublings int
	since     time.Duration // of the last doubling
	lost      time.Duration // when it was taken for dead because it was silent
	gone      bool          // that was so, and the link is not proved again
	mistakes  uint64        // times that it was only late
}

// of returns how long a neighbour may be silent with whom detect is agreed.
func (p *patience) of(detect, now time.Duration) time.Duration {
	return min(detect<<p.lasting(now), maxDetection)
}

// lasting returns how many doublings still count.
func (p *patience) lasting(now time.Duration) int {
	if now-p.since >= patienceLasts {
		return 0
	}
	return p.doublings
}

// silent takes note that the neighbour is taken for dead since nothing was heard.
func (p *patience) silent(now time.Duration) { p.lost, p.gone = now, true }

// proved takes note that the link is proved to work.
func (p *patience) proved(detect, now time.Duration) {
	late := p.gone && now-p.lost < max(soonDetections*detect, soonAtLeast)
	p.gone = false
	if !late {
		return
	}
	p.doublings, p.since = min(p.lasting(now)+1, maxDoublings), now
	p.mistakes++
}
