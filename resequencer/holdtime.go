package resequencer

import (
	"math/bits"
	"time"
)

// A hold shorter than the difference of the paths' delays is worse than none: every hole
// is then reported to TCP, and late. A hold that is much longer delays the repair of
// every loss. So each flow measures how long its holes took to be filled, and waits twice
// as long (Presto's alpha).
//
// The measure is an EWMA that rises at once and falls slowly, since the slowest path
// counts and is seen only now and then. It falls with every quietPackets that were in
// order, and with every loss for which the flow waited in vain. It begins with the
// longest time. Until the first hole is filled that is only a guess, and it falls faster.
const (
	alpha        = 2
	beta         = 2
	quietPackets = 32
	fallGuessed  = 3 // shifts: an eighth, a sixty-fourth
	fallMeasured = 6
	fallVain     = 2
)

// delays is a flow's measure.
type delays struct {
	ewma     time.Duration
	measured bool
	doubted  bool          // a hole was waited for in vain, and none filled that took about so long
	vainAt   time.Duration // when a hole was last given up that began after one before it was
}

// observe takes the time that a hole took to be filled.
func (d *delays) observe(t time.Duration) {
	if t >= d.ewma>>fallVain {
		d.doubted = false
	}
	if t >= d.ewma {
		d.ewma = t
	} else {
		d.ewma -= (d.ewma - t) >> fallMeasured
	}
	d.measured = true
}

// quiet takes note that all was in order for a while, or a loss a loss.
func (d *delays) quiet() {
	if d.measured {
		d.ewma -= d.ewma >> fallMeasured
	} else {
		d.ewma -= d.ewma >> fallGuessed
	}
}

// vain notes that a hole known since a time is given up now. It returns false if
// the flow waited for it together with another hole that counts: it cost the flow
// little more.
func (d *delays) vain(since, now time.Duration) bool {
	if since < d.vainAt {
		return false
	}
	d.vainAt = now
	if d.measured && !d.doubted {
		d.doubted = true
	} else {
		d.ewma >>= fallVain
	}
	return true
}

// waits are the times for which packets wait: few, so that all that wait
// equally long form a queue whose first is due first.
type waits struct {
	min, max time.Duration
	n        int
}

func newWaits(lowest, highest time.Duration) waits {
	w := waits{min: lowest, max: highest}
	for w.n = 1; w.of(w.n-1) < highest; w.n++ {
	}
	return w
}

// of is the time that waiters of a class wait: double that of the class below.
func (w *waits) of(class int) time.Duration {
	if class >= 62-bits.Len64(uint64(w.min)) {
		return w.max
	}
	return min(w.min<<class, w.max)
}

// class is the lowest whose time is at least t, or the highest.
func (w *waits) class(t time.Duration) int {
	if t <= w.min {
		return 0
	}
	return min(bits.Len64(uint64((t-1)/w.min)), w.n-1)
}
