package tcp

import (
	"cmp"
	"time"
)

// Memory is what a connection, or a subflow, that stays open keeps from a transfer for the
// next one: its windows and what it has measured. The zero value is that of a new one.
type Memory struct {
	cwnd, ssthresh, grown int32 // cwnd 0: there is none
	measured              bool
	srtt, rttvar          time.Duration
	alpha                 float64 // of marks
}

// Memory returns that of a Sender whose transfer has ended. A window that the transfer did not
// fill has not grown by it (RFC 7661 §4.2).
func (s *Sender) Memory() Memory {
	m := Memory{s.cwnd, s.ssthresh, s.grown, s.measured, s.srtt, s.rttvar, s.marks.alpha}
	if sent := s.board.next * int64(s.c.MSS); sent <= int64(s.began()) {
		m.cwnd = min(m.cwnd, s.began())
	}
	return m
}

// began is the window with which the transfer began.
func (s *Sender) began() int32 { return cmp.Or(s.recalled, s.initial()) }

func (s *Sender) initial() int32 {
	return int32(min(int64(s.c.InitialWindow), s.c.window())) * int32(s.c.MSS)
}

// Recall gives a Sender that has just started the Memory of a connection that has been idle
// since. As in Linux, the window halves after a timeout of idleness, and again after each
// further one, down to the initial window (RFC 5681 §4.1, RFC 2861).
func (s *Sender) Recall(m Memory, idle time.Duration) {
	if m.cwnd == 0 {
		return
	}
	s.phase, s.board.missing = open, 0
	s.cwnd, s.ssthresh, s.grown = m.cwnd, m.ssthresh, m.grown
	s.measured, s.srtt, s.rttvar, s.marks.alpha = m.measured, m.srtt, m.rttvar, m.alpha
	for left, rto := idle-s.rto(), s.rto(); left > 0 && s.cwnd > s.initial(); left -= rto {
		s.ssthresh = max(s.ssthresh, s.cwnd/4*3)
		s.cwnd = max(s.cwnd/2, s.initial())
	}
	s.recalled = s.cwnd
}

// Resume begins another transfer, of total bytes, on a connection of which the last one is
// Done, with its Memory. Sequence numbers begin at 0 again, and Stats anew.
func (s *Sender) Resume(total int64, idle time.Duration) {
	m := s.Memory()
	s.Start(s.c, total)
	s.Recall(m, idle)
}

// Recall is that of a subflow, by its number.
func (g *Group) Recall(s *Sender, m Memory, idle time.Duration) {
	s.Recall(m, idle)
	g.note(s.sub.number, s)
}
