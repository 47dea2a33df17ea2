package congestion

// window is what DCTCP's sender knows of a window of data (RFC 8257 §3.3), with its
// arithmetic in whole parts of 1024, as Linux has it.
type window struct {
	alpha                  uint32 // in parts of whole
	end                    uint32 // of the window: a sequence number
	delivered, deliveredCE uint32 // packets before it
}

const whole = 1024

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
	*w = window{uint32(min(alpha, whole)), nxt, delivered, deliveredCE}
}

// reduced is cwnd (1 - alpha/2), at least two packets (RFC 8257 §3.3).
func (w *window) reduced(cwnd uint32) uint32 {
	return max(2, cwnd-uint32(uint64(cwnd)*uint64(w.alpha)/(2*whole)))
}
