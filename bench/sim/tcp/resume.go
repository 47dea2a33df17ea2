package tcp

import (
	"cmp"
	"time"
)

// Resume begins another transfer, of total bytes, on a connection of which the last one is
// Done. Sequence numbers begin at 0 again. The connection keeps its windows and what it has
// measured. As in Linux, a window that the last transfer did not fill has not grown by it (RFC
// 7661 §4.2), and after a timeout of idleness it halves, and again after each further one, down
// to the initial window (RFC 5681 §4.1, RFC 2861). Stats begin anew.
func (s *Sender) Resume(total int64, idle time.Duration) {
	old := *s
	s.Start(s.c, total)
	initial := s.cwnd
	s.phase, s.board.missing = open, 0
	s.cwnd, s.ssthresh, s.grown = old.cwnd, old.ssthresh, old.grown
	s.measured, s.srtt, s.rttvar, s.marks = old.measured, old.srtt, old.rttvar, old.marks
	s.marks.end = 0
	if begun := cmp.Or(old.resumed, initial); old.total <= int64(begun) {
		s.cwnd = min(s.cwnd, begun)
	}
	for left, rto := idle-s.rto(), s.rto(); left > 0 && s.cwnd > initial; left -= rto {
		s.ssthresh = max(s.ssthresh, s.cwnd/4*3)
		s.cwnd = max(s.cwnd/2, initial)
	}
	s.resumed = s.cwnd
}
