package tcp

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// marked acknowledges n segments one by one, those marked that say so, and sends
// what may be sent in between.
func marked(s *Sender, n int, mark func(i int) bool) {
	for i := range n {
		drain(s, 0)
		s.Ack(Ack{Cum: (s.board.una + 1) * int64(s.c.MSS), ECE: mark(i)}, 0)
	}
}

func always(int) bool { return true }
func never(int) bool  { return false }

// TestDCTCP_alphaIsThePartOfMarkedPackets (RFC 8257 §3.3).
func TestDCTCP_alphaIsThePartOfMarkedPackets(t *testing.T) {
	c, _ := Config{DCTCP: true}.WithDefaults()
	for _, part := range []float64{0, .1, .5, 1} {
		rng := rand.New(rand.NewPCG(8, uint64(100*part)))
		var s Sender
		s.Start(&c, 0)
		sum, n := 0., 0
		for i := range 30000 {
			marked(&s, 1, func(int) bool { return rng.Float64() < part })
			if i > 10000 {
				sum += s.marks.alpha
				n++
			}
		}
		if mean := sum / float64(n); math.Abs(mean-part) > .02 {
			t.Errorf("%v of packets marked: alpha %.3f", part, mean)
		}
	}
}

// TestDCTCP_alphaForgetsASixteenthPerWindow from 1 on.
func TestDCTCP_alphaForgetsASixteenthPerWindow(t *testing.T) {
	c, _ := Config{DCTCP: true, InitialWindow: 10, WindowBytes: 10 * 1460}.WithDefaults()
	var s Sender
	s.Start(&c, 0)
	marked(&s, 1, never) // ends the empty first window
	want := 15. / 16
	for w := range 20 {
		if math.Abs(s.marks.alpha-want) > 1e-9 {
			t.Fatalf("after %d windows alpha is %v, want %v", w, s.marks.alpha, want)
		}
		marked(&s, 10, never)
		want *= 15. / 16
	}
}

// TestMarks_reduceOncePerWindow: DCTCP by half of alpha, ECN by half.
func TestMarks_reduceOncePerWindow(t *testing.T) {
	for _, c := range []struct {
		config Config
		alpha  float64
		want   int32
	}{
		{Config{DCTCP: true}, 1, 50_000},
		{Config{DCTCP: true}, .25, 87_500},
		{Config{DCTCP: true}, 0, 100_000},
		{Config{ECN: true}, .25, 50_000},
		{Config{}, 1, 100_000},
	} {
		c.config.MSS, c.config.WindowBytes, c.config.InitialWindow = 1000, 100_000, 100
		config, err := c.config.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		var s Sender
		s.Start(&config, 0)
		drain(&s, 0)
		s.marks.alpha, s.marks.end = c.alpha, 1000 // alpha stays
		marked(&s, 99, always)
		if s.cwnd != c.want {
			t.Errorf("%+v, alpha %v: window %d after 99 marks in one window, want %d", c.config, c.alpha, s.cwnd, c.want)
		}
		marked(&s, 2, always)
		if again := s.cwnd < c.want; again != (c.want < 100_000) {
			t.Errorf("%+v, alpha %v: window %d after marks in the next window", c.config, c.alpha, s.cwnd)
		}
	}
}

// TestMarks_doNotReduceWhatALossHas already.
func TestMarks_doNotReduceWhatALossHas(t *testing.T) {
	c, _ := Config{DCTCP: true, InitialWindow: 40}.WithDefaults()
	var s Sender
	s.Start(&c, 0)
	drain(&s, 0)
	s.Ack(Ack{Sacked: 1460, SackedLen: 5 * 1460}, 0)
	drain(&s, 0)
	s.Ack(Ack{Cum: 6 * 1460, Sacked: 7 * 1460, SackedLen: 5 * 1460, ECE: true}, 0)
	if s.cwnd != 20*1460 {
		t.Errorf("window %d, want half of 40 segments", s.cwnd)
	}
}

// TestMarks_leaveTwoSegments however many there are.
func TestMarks_leaveTwoSegments(t *testing.T) {
	for _, c := range []Config{{DCTCP: true}, {ECN: true}} {
		c, _ = c.WithDefaults()
		var s Sender
		s.Start(&c, 0)
		marked(&s, 1000, always)
		if s.cwnd != 2*1460 {
			t.Errorf("DCTCP %v: window %d, want %d", c.DCTCP, s.cwnd, 2*1460)
		}
	}
}

// TestDCTCP_steadyState of one long flow at a bottleneck of 60 packets a round
// trip that marks beyond 20. The analysis of the DCTCP paper (SIGCOMM 2010, §3.3)
// has alpha = sqrt(2/W), W being 80, a queue that swings by sqrt(2·W)/2 below its
// peak K+1, and a link that is never idle.
func TestDCTCP_steadyState(t *testing.T) {
	const perRTT, mark = 60, 20
	n := network{config: Config{DCTCP: true, WindowBytes: 1 << 20}, packet: 1200, markAt: mark}
	n.delay = (perRTT - 1) * 1200 / 2
	warm := 20 * time.Millisecond
	sum, count, least := 0., 0, math.MaxInt
	var idle time.Duration
	n.onAck = func(Ack) {
		if n.now < warm {
			n.maxQueue, idle = 0, n.idle
			return
		}
		sum += n.s.marks.alpha
		count++
		least = min(least, int((n.freeAt-n.now)/1200))
	}
	n.stop = func() bool { return n.now > 100*time.Millisecond }
	n.mustRun(t)
	alpha, want := sum/float64(count), math.Sqrt(2./(perRTT+mark))
	swing := math.Sqrt(2*(perRTT+mark)) / 2
	t.Logf("alpha %.3f (analysis %.3f), queue %d to %d (analysis %.1f to %d), idle %v", alpha, want, least, n.maxQueue, mark+1-swing, mark+1, n.idle-idle)
	if math.Abs(alpha/want-1) > .15 {
		t.Errorf("alpha %.3f, analysis %.3f", alpha, want)
	}
	if n.maxQueue > mark+4 || float64(least) < mark-swing {
		t.Errorf("queue from %d to %d, analysis %.1f to %d", least, n.maxQueue, mark+1-swing, mark+1)
	}
	if n.idle != idle || n.s.retransmits > 0 {
		t.Errorf("the link was idle for %v; %d sent again", n.idle-idle, n.s.retransmits)
	}
}

// TestNewReno_steadyState: a long flow at a bottleneck with room for a round trip's
// packets keeps it busy and loses one packet per cycle of about half the window's
// round trips.
func TestNewReno_steadyState(t *testing.T) {
	const perRTT = 60
	n := network{config: Config{WindowBytes: 1 << 20, InitialWindow: 4}, packet: 1200, room: perRTT, delay: (perRTT - 1) * 1200 / 2}
	warm := 20 * time.Millisecond
	var idle time.Duration
	n.onAck = func(Ack) {
		if n.now < warm {
			idle, n.dropped = n.idle, 0
		}
	}
	n.stop = func() bool { return n.now > 200*time.Millisecond }
	n.mustRun(t)
	// The window swings between perRTT and 2·perRTT, a packet a round trip, which
	// takes 1 to 2 times 72 µs: perRTT·1.5·72 µs = 6.5 ms a cycle.
	if n.dropped < 20 || n.dropped > 40 {
		t.Errorf("%d losses in 180 ms, want about 28", n.dropped)
	}
	if part := float64(n.idle-idle) / float64(180*time.Millisecond); part > .01 || n.s.timeouts > 0 {
		t.Errorf("the link was idle %.2f %% of the time, %d timeouts", 100*part, n.s.timeouts)
	}
}
