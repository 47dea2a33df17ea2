package tcp

// minWindow is the least window after a reduction, in segments: RFC 5681's for
// losses, and Linux's for marks.
const minWindow = 2

// grow opens the window for acknowledged bytes: in slow start by at most a segment for
// each acknowledgement, then by a segment for each window (RFC 5681 §3.1, counted in
// bytes as in RFC 3465), or for as much more as subflows' linked increases ask for. It never exceeds the receiver's window, so that a reduction
// always has an effect.
func (s *Sender) grow(bytes int32) {
	mss := int32(s.c.MSS)
	if s.cwnd < s.ssthresh {
		s.cwnd = min(s.cwnd+min(bytes, mss), s.limit)
	} else {
		needed := s.cwnd
		if s.sub != nil && !s.c.Uncoupled {
			needed, s.grown = s.sub.needed(s.cwnd, s.grown)
		}
		if s.grown += bytes; s.grown >= needed {
			s.grown -= needed
			s.cwnd = min(s.cwnd+mss, s.limit)
		}
	}
}

// halve sets the threshold to half of what has not been acknowledged (RFC 5681
// §3.1); a timeout after a timeout leaves it as it is.
func (s *Sender) halve() {
	b := &s.board
	s.ssthresh = int32(max((b.next-b.una)/2, minWindow)) * int32(s.c.MSS)
	s.grown = 0
}

// gain is DCTCP's g (RFC 8257 §4.2).
const gain = 1. / 16

// marks estimates the part of packets that are marked (RFC 8257 §3.3). It counts packets,
// not bytes, since each has an acknowledgement of its own, in any order of arrival.
type marks struct {
	alpha         float64
	packets, seen uint32 // in this window, and those of them that were marked
	end           int64  // the window ends when more than this is acknowledged
}

// reset begins with the worst, so that the first mark halves (RFC 8257 §4.2).
func (m *marks) reset() { *m = marks{alpha: 1} }

// mark counts an acknowledgement with or without a congestion mark. It reduces the window
// at most once per window of data: packets that left before a reduction say nothing about
// its effect.
func (s *Sender) mark(marked bool) {
	b, m := &s.board, &s.marks
	if s.c.DCTCP {
		m.packets++
		if marked {
			m.seen++
		}
		if b.una > m.end {
			m.alpha += gain * (float64(m.seen)/float64(m.packets) - m.alpha)
			m.packets, m.seen, m.end = 0, 0, b.next
		}
	}
	if !marked || s.phase != open || b.una <= s.reduced || !s.c.DCTCP && !s.c.ECN {
		return
	}
	part := 0.5
	if s.c.DCTCP {
		part = m.alpha / 2
	}
	least := min(s.cwnd, minWindow*int32(s.c.MSS))
	s.cwnd = max(s.cwnd-int32(float64(s.cwnd)*part), least)
	s.ssthresh = s.cwnd
	s.grown = 0
	s.reduced = b.next // what leaves from now on may reduce again
}
