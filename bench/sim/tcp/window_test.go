package tcp

import (
	"slices"
	"testing"
	"time"
)

const rtt = 100 * time.Microsecond

// flights returns how many segments leave per round trip on a network without a
// bottleneck, where all of a round's packets leave at one time.
func flights(t *testing.T, n *network, rounds int) (counts []int) {
	t.Helper()
	counts = make([]int, rounds)
	n.delay = rtt / 2
	n.onSend = func(Segment) {
		if r := int(n.now / rtt); r < rounds {
			counts[r]++
		}
	}
	n.stop = func() bool { return n.now >= time.Duration(rounds)*rtt }
	n.mustRun(t)
	return counts
}

// lose drops each segment that is named, once for each time it is.
func lose(segments ...int64) func(int, Segment) []time.Duration {
	left := slices.Clone(segments)
	return func(_ int, s Segment) []time.Duration {
		if i := slices.Index(left, s.Seq/1460); i >= 0 {
			left = slices.Delete(left, i, i+1)
			return nil
		}
		return []time.Duration{0}
	}
}

// TestWindow_slowStart doubles every round trip up to the receiver's window.
func TestWindow_slowStart(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   []int
	}{
		{Config{InitialWindow: 2}, []int{2, 4, 8, 16, 32, 64, 128, 179, 179}},
		{Config{WindowBytes: 64 << 10}, []int{10, 20, 40, 44, 44}},
		{Config{WindowBytes: 1460}, []int{1, 1, 1}},
		{Config{InitialWindow: 1, Handshake: true}, []int{1, 1, 2, 4}}, // the first opens the connection
		{Config{InitialWindow: 1, MSS: 100, WindowBytes: 350}, []int{1, 2, 3, 3}},
	} {
		if got := flights(t, &network{config: c.config}, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v a round, want %v", c.config, got, c.want)
		}
	}
}

// TestWindow_fastRetransmitHalvesOnce however many of a window are lost, sends
// exactly these again, and adds a segment a round trip from then on (RFC 5681 §3).
func TestWindow_fastRetransmitHalvesOnce(t *testing.T) {
	for name, lost := range map[string][]int64{
		"the first": {20},
		"three":     {20, 22, 24},
		"a run":     {25, 26, 27, 28, 29, 30, 31},
		"half":      {20, 22, 24, 26, 28, 30, 32, 34, 36, 38},
		// The flow's last but one has only one behind it: a partial acknowledgement
		// tells.
		"nearly the last": {21, 58},
	} {
		n := network{config: Config{InitialWindow: 20, RTOMin: time.Second}, total: 60 * 1460, delay: rtt / 2, data: lose(lost...)}
		var again []int64
		n.onSend = func(s Segment) {
			if s.Retransmit {
				again = append(again, s.Seq/1460)
			}
		}
		halved, cwnd := 0, int32(0)
		n.onAck = func(Ack) {
			if n.s.cwnd < cwnd {
				halved++
			}
			cwnd = n.s.cwnd
		}
		n.mustRun(t)
		if !slices.Equal(again, lost) {
			t.Errorf("%s: sent again %v, want %v", name, again, lost)
		}
		if _, timeouts, _ := n.s.Stats(); halved != 1 || timeouts != 0 {
			t.Errorf("%s: %d reductions, %d timeouts, want one and none", name, halved, timeouts)
		}
	}
}

// TestWindow_halvesWhatIsUnderWay follows one loss: 16 under way, 8 after it, and a
// segment more every round trip.
func TestWindow_halvesWhatIsUnderWay(t *testing.T) {
	n := network{config: Config{InitialWindow: 16, WindowBytes: 16 * 1460}, data: lose(32)}
	// Round 2 loses its first. Round 3: 15 acknowledgements tell; the first two let
	// nothing out, for the receiver's window ends at the hole; the third halves and
	// the last ones let the lost segment out, when 8 - 1 are left under way.
	got := flights(t, &n, 9)
	if want := []int{16, 16, 16, 1, 8, 9, 10, 11, 12}; !slices.Equal(got, want) {
		t.Errorf("%v a round, want %v", got, want)
	}
}

// TestWindow_timeout begins anew with one segment, up to half of what was under
// way in slow start, then by one a round trip (RFC 5681 §3.1).
func TestWindow_timeout(t *testing.T) {
	all := make([]int64, 16)
	for i := range all {
		all[i] = int64(16 + i)
	}
	n := network{config: Config{InitialWindow: 16, WindowBytes: 16 * 1460, RTOMin: 5 * rtt}, data: lose(all...)}
	// The timer began with round 1's acknowledgements, at 1 rtt, and ends at 6.
	got := flights(t, &n, 13)
	if want := []int{16, 16, 0, 0, 0, 0, 1, 2, 4, 8, 9, 10, 11}; !slices.Equal(got, want) {
		t.Errorf("%v a round, want %v", got, want)
	}
	if again, timeouts, _ := n.s.Stats(); again != 16 || timeouts != 1 {
		t.Errorf("%d sent again, %d timeouts, want 16, 1", again, timeouts)
	}
}

// TestWindow_timeoutKeepsWhatHasArrived: after a timeout only holes are sent again.
func TestWindow_timeoutKeepsWhatHasArrived(t *testing.T) {
	n := network{config: Config{InitialWindow: 10, RTOMin: 5 * rtt}, total: 10 * 1460, delay: rtt / 2,
		data: lose(2, 2, 7)} // the second time when it is sent again
	n.mustRun(t)
	if again, timeouts, _ := n.s.Stats(); again != 3 || timeouts != 1 {
		t.Errorf("%d sent again, %d timeouts, want 3 (2, 2, 7), 1", again, timeouts)
	}
}

// TestWindow_countsBytes: an acknowledgement of five segments is worth one in slow
// start and five of the window's ten after it; a reduction begins to count anew.
func TestWindow_countsBytes(t *testing.T) {
	c, _ := Config{ECN: true}.WithDefaults()
	var s Sender
	s.Start(&c, 0)
	acknowledge := func(segments int64, marked bool, want int32) {
		t.Helper()
		drain(&s, 0)
		s.Ack(Ack{Cum: (s.board.una + segments) * 1460, ECE: marked}, 0)
		if s.cwnd != want*1460 {
			t.Errorf("window %d, want %d segments", s.cwnd, want)
		}
	}
	acknowledge(5, false, 11)
	s.ssthresh = 11 * 1460
	for _, want := range []int32{11, 11, 12, 12, 13} { // after 11, then 12 more
		acknowledge(5, false, want)
	}
	s.cwnd, s.grown = 12*1460, 11*1460
	acknowledge(1, true, 6)
	for _, want := range []int32{6, 6, 6, 6, 6, 7} {
		acknowledge(1, false, want)
	}
	s.grown = 6 * 1460
	drain(&s, 0) // 7 are under way
	s.Ack(Ack{Cum: s.board.una * 1460, Sacked: (s.board.una + 1) * 1460, SackedLen: 6 * 1460}, 0)
	acknowledge(7, false, 3)
	acknowledge(1, false, 3)
}

// TestWindow_secondTimeoutKeepsTheThreshold (RFC 5681 §3.1, equation 4).
func TestWindow_secondTimeoutKeepsTheThreshold(t *testing.T) {
	n := network{config: Config{InitialWindow: 20}, total: 20 * 1460, delay: rtt / 2,
		data: func(i int, _ Segment) []time.Duration {
			if i < 22 { // the first flight and two attempts
				return nil
			}
			return []time.Duration{0}
		}}
	n.mustRun(t)
	if _, timeouts, _ := n.s.Stats(); timeouts != 3 || n.s.ssthresh != 10*1460 {
		t.Errorf("%d timeouts, threshold %d, want 3, %d", timeouts, n.s.ssthresh, 10*1460)
	}
}
