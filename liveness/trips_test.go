package liveness

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The quantiles are those of the latest 64 round trips, by an obvious count.
func TestTrips_quantiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var all []time.Duration
	tr := new(trips)
	if a, b := tr.quantiles(); a != 0 || b != 0 {
		t.Errorf("there is none: %v, %v", a, b)
	}
	for range 300 {
		rtt := time.Duration(r.IntN(10_000)) * time.Microsecond
		tr.add(rtt)
		all = append(all, rtt)
		latest := all[max(0, len(all)-64):]
		// oracle: the least value that at least so many percent are not above
		rank := func(percent int) time.Duration {
			for _, v := range slices.Sorted(slices.Values(latest)) {
				below := 0
				for _, o := range latest {
					if o <= v {
						below++
					}
				}
				if below*100 >= percent*len(latest) {
					return v
				}
			}
			return -1
		}
		median, p99 := tr.quantiles()
		if median != rank(50) || p99 != rank(99) {
			t.Fatalf("after %d: %v and %v, want %v and %v", len(all), median, p99, rank(50), rank(99))
		}
	}
	tr.add(-time.Second)
	tr.add(100 * time.Hour)
	if _, p99 := tr.quantiles(); p99 != (1<<32-1)*time.Microsecond {
		t.Errorf("above what is remembered: %v", p99)
	}
}

// What a Tally counts and what it remembers are the same round trips, and a copy, as paths get
// that follow from one, goes on alone.
func TestTally_oneRecord(t *testing.T) {
	var one Tally
	one.measured(time.Millisecond)
	two := one
	two.measured(5 * time.Millisecond)
	for i, c := range []struct {
		t    *Tally
		n    uint64
		most time.Duration
	}{{&one, 1, time.Millisecond}, {&two, 2, 5 * time.Millisecond}} {
		if _, p99 := c.t.latest.quantiles(); p99 != c.most || c.t.RTT.Count() != c.n || uint64(c.t.latest.n) != c.n {
			t.Errorf("%d: %d counted, %d remembered, the longest %v; want %d, %v", i, c.t.RTT.Count(), c.t.latest.n, p99, c.n, c.most)
		}
	}
}

// The least is known once 64 round trips are, and is that of the latest 64.
func TestTrips_least(t *testing.T) {
	if new(trips).least() != 0 {
		t.Error("nothing is remembered")
	}
	tr := new(trips)
	for i := range 63 {
		if tr.add(time.Duration(100-i) * time.Microsecond); tr.least() != 0 {
			t.Fatalf("after %d round trips: %v", i+1, tr.least())
		}
	}
	if tr.add(time.Millisecond); tr.least() != 38*time.Microsecond {
		t.Errorf("%v", tr.least())
	}
	for range 64 {
		tr.add(time.Millisecond)
	}
	if tr.least() != time.Millisecond {
		t.Errorf("what was before is remembered: %v", tr.least())
	}
}
