package tcp

import (
	"testing"
	"time"
)

// transfer has a Sender without losses send all, a round trip after the other.
func transfer(s *Sender, r *Receiver, now *time.Duration, rtt time.Duration) (rounds int) {
	for !s.Done() {
		var acks []Ack
		for {
			g, ok := s.Next(*now)
			if !ok {
				break
			}
			a, _ := r.Data(g.Seq, g.Len, false)
			a.Echo = *now
			acks = append(acks, a)
		}
		*now += rtt
		for _, a := range acks {
			s.Ack(a, *now)
		}
		rounds++
	}
	return rounds
}

func TestResume_keepsTheWindow(t *testing.T) {
	c, err := Config{MSS: 1000, InitialWindow: 10, WindowBytes: 400_000, RTOMin: 200 * time.Millisecond}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	const rtt = time.Millisecond
	var s Sender
	var r Receiver
	now := time.Duration(0)
	s.Start(&c, 300_000)
	r.Start(&c, 300_000)
	// 10, 20, 40, 80 and 150 of 160 segments.
	if n := transfer(&s, &r, &now, rtt); n != 5 || s.cwnd != 310_000 {
		t.Fatalf("the first takes %d round trips to a window of %d, want 5 and 310000", n, s.cwnd)
	}
	for i, step := range []struct {
		idle   time.Duration
		bytes  int64
		window int32 // that it begins with
		rounds int
	}{
		{0, 600_000, 310_000, 2},                    // the receiver's window ends growth
		{0, 5_000, 400_000, 1},                      // fills nothing, does not grow
		{200 * time.Millisecond, 5_000, 400_000, 1}, // idle for no more than a timeout
		{201 * time.Millisecond, 5_000, 200_000, 1},
		{0, 5_000, 200_000, 1},
		{599 * time.Millisecond, 5_000, 50_000, 1},
		{time.Hour, 5_000, 10_000, 1},
		{0, 30_000, 10_000, 2},
	} {
		s.Resume(step.bytes, step.idle)
		r.Start(&c, step.bytes)
		if s.cwnd != step.window {
			t.Errorf("step %d: begins with a window of %d, want %d", i, s.cwnd, step.window)
		}
		if n := transfer(&s, &r, &now, rtt); n != step.rounds {
			t.Errorf("step %d: %d round trips, want %d", i, n, step.rounds)
		}
		if !s.measured || s.srtt != rtt {
			t.Errorf("step %d: forgets its round trip: %v", i, s.srtt)
		}
	}
	if s.ssthresh != 400_000 {
		t.Errorf("the threshold is %d, want the receiver's window of 400000", s.ssthresh)
	}
}

// A connection that lost has its threshold afterwards, and none of the loss's state.
func TestResume_afterALoss(t *testing.T) {
	c, err := Config{MSS: 1000}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	var s Sender
	var r Receiver
	s.Start(&c, 10_000)
	r.Start(&c, 10_000)
	now := time.Duration(0)
	for i := 0; ; i++ { // the first of ten is lost
		g, ok := s.Next(now)
		if !ok {
			break
		}
		if i > 0 {
			a, _ := r.Data(g.Seq, g.Len, false)
			s.Ack(a, now)
		}
	}
	transfer(&s, &r, &now, time.Millisecond)
	if n, _, _ := s.Stats(); n == 0 {
		t.Fatal("nothing was sent again")
	}
	window := s.ssthresh
	s.Resume(40_000, 0)
	if n, timeouts, dups := s.Stats(); n+timeouts+dups != 0 || s.phase != open || s.ssthresh != window || s.cwnd > 10_000 {
		t.Errorf("%d sent again, %d timeouts, %d duplicates, phase %d, threshold %d (want %d), window %d", n, timeouts, dups, s.phase, s.ssthresh, window, s.cwnd)
	}
	r.Start(&c, 40_000)
	transfer(&s, &r, &now, time.Millisecond)
	if !r.Done() {
		t.Error("not all has arrived")
	}
}
