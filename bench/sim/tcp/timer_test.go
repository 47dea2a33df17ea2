package tcp

import (
	"testing"
	"time"
)

// TestTimer_followsRFC6298 §2's formulas.
func TestTimer_followsRFC6298(t *testing.T) {
	c, _ := Config{RTOMin: time.Microsecond, RTOInitial: time.Second}.WithDefaults()
	var s Sender
	s.Start(&c, 0)
	us := time.Microsecond
	for _, step := range []struct{ rtt, want time.Duration }{
		{0, time.Second},       // nothing measured
		{800 * us, 2400 * us},  // R + 4·R/2
		{800 * us, 2000 * us},  // 800 + 4·(3/4·400)
		{1600 * us, 2600 * us}, // var 3/4·300 + 1/4·800 = 425; srtt 7/8·800 + 1/8·1600 = 900
		{900 * us, 2175 * us},  // var 318.75
		{100 * us, 2556250},    // var 439.0625 µs, srtt 800
	} {
		if step.rtt > 0 {
			s.sample(step.rtt)
		}
		if got := s.rto(); got > step.want || got < step.want-10 { // ns, for divisions
			t.Errorf("after %v: %v, want %v", step.rtt, got, step.want)
		}
	}
	s.c.RTOMin = 10 * time.Millisecond
	if got := s.rto(); got != 10*time.Millisecond {
		t.Errorf("%v is less than RTOMin", got)
	}
}

// TestTimer_doublesUntilAPacketIsMeasured: the timeout backs off, and what is sent
// again is no measurement (RFC 6298 §3, §5).
func TestTimer_doublesUntilAPacketIsMeasured(t *testing.T) {
	ms := time.Millisecond
	n := network{config: Config{InitialWindow: 1, RTOMin: 2 * ms, RTOInitial: 4 * ms}, total: 3 * 1460, delay: rtt / 2}
	var times []time.Duration
	n.onSend = func(Segment) { times = append(times, n.now) }
	n.data = func(i int, _ Segment) []time.Duration {
		if i < 3 || i == 5 {
			return nil
		}
		return []time.Duration{0}
	}
	n.mustRun(t)
	want := []time.Duration{
		0, 4 * ms, 12 * ms, 28 * ms, // 4, 8, 16 later; this one gets through
		28*ms + rtt, 28*ms + rtt, // 4 measured, 5 lost: the timeout is RTOMin again
	}
	want = append(want, 28*ms+2*rtt+2*ms)
	if len(times) != len(want) {
		t.Fatalf("sent at %v, want %v", times, want)
	}
	for i := range want {
		if times[i] != want[i] {
			t.Fatalf("sent at %v, want %v", times, want)
		}
	}
}

// TestTimer_endsAtAMinute however often it is doubled.
func TestTimer_endsAtAMinute(t *testing.T) {
	c, _ := Config{}.WithDefaults()
	var s Sender
	s.Start(&c, 0)
	now := time.Duration(0)
	for range 100 {
		drain(&s, now)
		at, ok := s.Deadline()
		if !ok || at <= now || at > now+maxRTO {
			t.Fatalf("timer at %v, %v, after %v", at, ok, now)
		}
		s.Timeout(at - 1) // too early: nothing
		now = at
		s.Timeout(now)
	}
	if _, n, _ := s.Stats(); n != 100 || s.rto() != maxRTO {
		t.Errorf("%d timeouts, then %v", n, s.rto())
	}
}

// TestTimer_stopsWhenAllIsAcknowledged.
func TestTimer_stopsWhenAllIsAcknowledged(t *testing.T) {
	n := network{total: 50_000, delay: rtt / 2}
	n.mustRun(t)
	if at, ok := n.s.Deadline(); ok {
		t.Errorf("a timer runs until %v", at)
	}
}

// TestTimer_opensAgain: the packet that opens a connection may be lost, too.
func TestTimer_opensAgain(t *testing.T) {
	for lost := range 3 {
		n := network{config: Config{Handshake: true}, total: 1, delay: rtt / 2, data: func(i int, _ Segment) []time.Duration {
			if i < lost {
				return nil
			}
			return []time.Duration{0}
		}}
		n.onSend = func(s Segment) {
			if opens := s.Len == 0; opens && s.Retransmit != (n.nData > 0) {
				t.Errorf("packet %d: %+v", n.nData, s)
			}
		}
		n.mustRun(t)
		want := 2*rtt + []time.Duration{0, 20, 60}[lost]*time.Millisecond
		if n.now < want || n.s.timeouts != uint32(lost) || n.r.cum() != 1 {
			t.Errorf("%d lost: done at %v, want %v; %d timeouts", lost, n.now, want, n.s.timeouts)
		}
	}
}

// TestTimer_beginsAnewWhenTheFirstIsSentAgain so that the retransmission has its
// time.
func TestTimer_beginsAnewWhenTheFirstIsSentAgain(t *testing.T) {
	c, _ := Config{}.WithDefaults()
	var s Sender
	s.Start(&c, 0)
	drain(&s, 0)
	s.Ack(Ack{Sacked: 1460, SackedLen: 3 * 1460}, rtt)
	drain(&s, rtt)
	if at, _ := s.Deadline(); at != rtt+10*time.Millisecond {
		t.Errorf("due at %v, want %v", at, rtt+10*time.Millisecond)
	}
}
