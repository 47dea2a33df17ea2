package tcp

import "time"

// linked is what linked increases go by (RFC 6356): together the subflows of a connection
// take from a bottleneck no more than one TCP would, and they move to where there is less
// congestion.
type linked struct {
	shares []share // by subflow
	each   float64 // bytes for each segment by which a window grows; 0: out of date
}

// share is a subflow's window in bytes and its round trip time, 0 before it is measured.
type share struct {
	cwnd int32
	rtt  time.Duration
}

// note takes note of a subflow's window and round trip time. A round trip time alone does
// not make the increase out of date: it need be computed only when a window changes (RFC
// 6356 §4.1).
func (l *linked) note(number int, s *Sender) {
	if number == len(l.shares) {
		l.shares = append(l.shares, share{})
	}
	h := &l.shares[number]
	if h.cwnd != s.cwnd || h.rtt == 0 {
		l.each = 0
	}
	h.cwnd, h.rtt = s.cwnd, s.srtt
}

// needs returns how many bytes must be acknowledged for a subflow's window to grow by a
// segment. RFC 6356 §3 has it grow for each acknowledgement by
//
//	min(alpha × bytes × MSS / total, bytes × MSS / window)
//
// where total is the sum of all windows. So a segment takes max(total/alpha, window), and
// total/alpha is (Σ window/rtt)² / max(window/rtt²).
func (l *linked) needs(window int32) int32 {
	if l.each == 0 {
		sum, most := 0., 0.
		for _, h := range l.shares {
			if h.rtt > 0 {
				rate := float64(h.cwnd) / float64(h.rtt)
				sum += rate
				most = max(most, rate/float64(h.rtt))
			}
		}
		if most == 0 {
			return window
		}
		l.each = sum * sum / most
	}
	return int32(max(min(l.each, maxWindow*MaxSubflows), float64(window)))
}
