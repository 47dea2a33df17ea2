package congestion

import "math"

// window is what DCTCP's sender knows of a window of data (RFC 8257 §3.3), with its
// arithmetic in whole parts of 1024, as Linux has it.
type window struct {
	alpha                  uint32 // in parts of whole
	end                    uint32 // of the window: a sequence number
	delivered, deliveredCE uint32 // packets before it
	before                 uint32 // packets of the congestion window before a reduction
	set, threshold         uint32 // of the congestion window and ssthresh when last set
}

const (
	whole    = 1024
	infinite = math.MaxInt32 // ssthresh at first
	cwr      = 2             // states of the kernel's TCP: marks were reported
	recovery = 3             // a loss was
)

// acknowledge takes note of an ACK. M of the window's n packets were marked: at its end
// alpha becomes (1-g) alpha + g M/n, with g = 1/16.
func (w *window) acknowledge(una, nxt, delivered, deliveredCE uint32) {
	if int32(una-w.end) < 0 {
		return
	}
	n, m := uint64(delivered-w.delivered), uint64(deliveredCE-w.deliveredCE)
	decay := w.alpha / 16
	if decay == 0 {
		decay = w.alpha
	}
	alpha := uint64(w.alpha - decay)
	if n > 0 {
		alpha += min(m, n) * (whole / 16) / n
	}
	w.alpha, w.end, w.delivered, w.deliveredCE = uint32(min(alpha, whole)), nxt, delivered, deliveredCE
}

// reduced is cwnd (1 - alpha/2), at least two packets (RFC 8257 §3.3).
func (w *window) reduced(cwnd uint32) uint32 {
	return max(2, cwnd-uint32(uint64(cwnd)*uint64(w.alpha)/(2*whole)))
}

// believe returns a congestion window and a threshold that may be, given some that the kernel
// has where it left programs out.
func (w *window) believe(cwnd, ssthresh, state uint32) (uint32, uint32) {
	if cwnd == 0 || cwnd > w.set {
		cwnd = w.set
	}
	cwnd = max(cwnd, 1)
	if w.set == 0 {
		cwnd = 2
	}
	var possible bool
	switch {
	case ssthresh < 2:
	case ssthresh == w.threshold:
		possible = true
	case state >= cwr:
		possible = ssthresh <= max(2, w.set)
	default:
		possible = ssthresh <= 1<<25 || ssthresh == infinite
	}
	if possible {
		return cwnd, ssthresh
	}
	w.before = cwnd
	if state >= recovery {
		return cwnd, max(2, cwnd-cwnd/2)
	}
	return cwnd, w.reduced(cwnd)
}
