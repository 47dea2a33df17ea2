package qcn

import (
	"math"
	"testing"
	"time"
)

const mbit = 1e6 / 8

func mustReaction(t *testing.T, c Config, rate float64) *Reaction {
	t.Helper()
	r, err := NewReaction(c, rate, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// The thesis's model, byte counter only (§5.3.3): the target becomes the former rate, the rate
// falls by at most a half; five cycles of a hundred packets each win back half of what is
// missing; from then on the target rises by 1.5 Mbit/s a cycle.
func TestReaction_thesis(t *testing.T) {
	r := mustReaction(t, Config{Floor: mbit, Limit: 1000 * mbit, Increase: 1.5 * mbit, Timer: -1}, 800*mbit)
	r.Feedback(32, 0)
	if !near(r.Rate(), 600*mbit) || !near(r.target, 800*mbit) {
		t.Fatalf("a quarter less than 800 Mbit/s is %g", r.Rate()/mbit)
	}
	for i, want := range []float64{700, 750, 775, 787.5, 793.75} {
		r.Sent(149_999)
		r.Tick(time.Hour) // there is no timer
		if r.Rate() >= want*mbit {
			t.Fatalf("cycle %d ends a byte early", i)
		}
		if r.Sent(1); !near(r.Rate(), want*mbit) {
			t.Fatalf("cycle %d of fast recovery: %g Mbit/s, want %g", i+1, r.Rate()/mbit, want)
		}
	}
	for i, want := range []float64{(793.75 + 801.5) / 2, ((793.75+801.5)/2 + 803) / 2} {
		if r.Sent(75_000); !near(r.Rate(), want*mbit) {
			t.Fatalf("cycle %d of active increase: %g Mbit/s, want %g", i+1, r.Rate()/mbit, want)
		}
	}
	before := r.Rate()
	r.Feedback(63, 0)
	if r.Rate() < before/2 || r.Rate() > before*0.51 || r.target != before || r.cycles != 0 {
		t.Errorf("the strongest feedback: %g of %g", r.Rate(), before)
	}
}

// The thesis' figure has cycles of 600 packets in fast recovery and of 100 after it (§5.5.3).
func TestReaction_cycleAfterRecovery(t *testing.T) {
	r := mustReaction(t, Config{Floor: mbit, Limit: 1000 * mbit, Increase: 1.5 * mbit, Timer: -1, Cycle: 900_000, Active: 150_000}, 800*mbit)
	r.Feedback(32, 0)
	r.Sent(5*900_000 - 1)
	if r.cycles != 4 {
		t.Fatalf("%d cycles, a byte before the fifth ends", r.cycles)
	}
	if r.Sent(1); r.cycles != 5 || r.target != 800*mbit {
		t.Fatalf("%d cycles, target %g", r.cycles, r.target/mbit)
	}
	if r.Sent(149_999); r.cycles != 5 {
		t.Fatal("a cycle of active increase ends a byte early")
	}
	if r.Sent(1); r.cycles != 6 || !near(r.target, 801.5*mbit) {
		t.Fatalf("%d cycles, target %g Mbit/s, want 801.5", r.cycles, r.target/mbit)
	}
}

// The standard's timer works beside the byte counter: while only one of the two is past fast
// recovery the increase is active, when both are it is hyper-active.
func TestReaction_hyperActive(t *testing.T) {
	const ms = time.Millisecond
	r := mustReaction(t, Config{Floor: mbit, Limit: 1e6 * mbit, Increase: 5 * mbit}, 100*mbit)
	r.Feedback(64, 0)
	r.Tick(75*ms - 1)
	if r.ticks != 4 || r.target != 100*mbit {
		t.Fatalf("%d cycles", r.ticks)
	}
	r.Tick(75 * ms)
	if r.ticks != 5 || r.target != 100*mbit { // still fast recovery, the next cycle is half as long
		t.Fatalf("%d cycles, target %g", r.ticks, r.target/mbit)
	}
	if r.Tick(82 * ms); r.ticks != 5 {
		t.Fatal("a cycle is too short")
	}
	r.Tick(82*ms + 500*time.Microsecond)
	if !near(r.target, 105*mbit) {
		t.Fatalf("target %g Mbit/s, want 105", r.target/mbit)
	}
	r.Sent(5 * 150_000) // five of the byte counter: no more than active
	if !near(r.target, 130*mbit) {
		t.Fatalf("target %g Mbit/s, want 130", r.target/mbit)
	}
	r.Sent(75_000)
	if !near(r.target, 180*mbit) {
		t.Fatalf("target %g Mbit/s, want 180", r.target/mbit)
	}
	r.Tick(90 * ms)
	r.Sent(75_000)
	if !near(r.target, 330*mbit) { // 50 by the timer, then 100: both are 2 past
		t.Fatalf("target %g Mbit/s, want 330", r.target/mbit)
	}
}

// A flow that nobody slows any more reaches the limit and is done; the floor holds whatever
// comes; a clock that stood still does not keep the loop busy.
func TestReaction_bounds(t *testing.T) {
	r := mustReaction(t, Config{Floor: 10 * mbit, Limit: 1000 * mbit}, 500*mbit)
	for range 1000 {
		r.Feedback(63, 0)
	}
	if r.Rate() != 10*mbit || r.Done() {
		t.Fatalf("%g Mbit/s, want the floor", r.Rate()/mbit)
	}
	last, now := r.Rate(), time.Duration(0)
	for !r.Done() && now < time.Minute {
		now += time.Millisecond
		r.Tick(now)
		r.Sent(uint64(r.Rate() / 1000))
		if r.Rate() < last {
			t.Fatal("the rate falls without feedback")
		}
		last = r.Rate()
	}
	if !r.Done() {
		t.Error("the flow stays limited")
	}
	r = mustReaction(t, Config{Floor: 1, Limit: 1e12}, 1e6)
	r.Tick(1 << 62)
	r.Sent(1 << 62)
	if r.due < 1<<62 || math.IsNaN(r.Rate()) || r.Rate() > 2e12 {
		t.Errorf("%+v", r)
	}
	for _, c := range []Config{{}, {Floor: 2, Limit: 1}, {Floor: 1, Limit: math.Inf(1)}, {Floor: math.NaN(), Limit: 1}, {Floor: 1, Limit: 2, Increase: -1}, {Floor: 1, Limit: 2, Recovery: -1}} {
		if _, err := NewReactions(c); err == nil {
			t.Errorf("%+v is no error", c)
		}
	}
}
