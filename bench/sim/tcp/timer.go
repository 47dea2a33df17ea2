package tcp

import "time"

// maxBackoff is the most times that the timeout is doubled.
const maxBackoff = 20

// sample takes note of a round trip time (RFC 6298 §2), one of each packet.
func (s *Sender) sample(rtt time.Duration) {
	if !s.measured {
		s.srtt, s.rttvar, s.measured = rtt, rtt/2, true
	} else {
		late := rtt - s.srtt
		s.rttvar += (max(late, -late) - s.rttvar) / 4
		s.srtt += late / 8
	}
	s.backoff = 0
}

// rto returns the retransmission timeout.
func (s *Sender) rto() time.Duration {
	d := s.c.RTOInitial
	if s.measured {
		d = max(s.srtt+4*s.rttvar, s.c.RTOMin)
	}
	return min(min(d, maxRTO)<<s.backoff, maxRTO)
}
