package resequencer

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Many holes open one after the other, each before the former is given up. Some of them
// are filled late, so that the estimate rises, and flowcells that keep coming extend
// waits. Still no packet stays longer than Hold or, with Juggler, longer than Hold and
// Merge.
func TestBuffer_noPacketWaitsLongerThanHold(t *testing.T) {
	for _, c := range []Config{
		{Discipline: Presto},
		{Discipline: Sequence},
		{Discipline: Juggler},
		{Discipline: Presto, MinHold: 3 * ms, Hold: 7 * ms},
	} {
		bound := c.withDefaults().Hold
		if c.Discipline == Juggler {
			bound += c.withDefaults().Merge
		}
		t.Run(fmt.Sprint(c.Discipline, " ", c.withDefaults().MinHold), func(t *testing.T) {
			var longest time.Duration
			var sum Stats
			for seed := range uint64(200) {
				l, s := holesInAChain(c, seed)
				if l > bound {
					t.Fatalf("seed %d: a packet stayed for %v, want at most %v", seed, l, bound)
				}
				longest = max(longest, l)
				sum.Timeouts += s.Timeouts
				sum.TimeoutsPutOff += s.TimeoutsPutOff
				sum.TimeoutsLate += s.TimeoutsLate
				sum.Filled += s.Filled
			}
			t.Logf("longest %v: %+v", longest, sum)
			if longest < bound*9/10 || sum.Timeouts < 100 || sum.Filled < 100 || sum.TimeoutsLate < 20 ||
				c.Discipline == Presto && sum.TimeoutsPutOff == 0 {
				t.Errorf("the holes test less than they should: longest %v, %+v", longest, sum)
			}
		})
	}
}

// holesInAChain sends 1,000 segments in flowcells of eight, of which by a seed some are
// late and some lost, and returns for how long one stayed at most.
func holesInAChain(c Config, seed uint64) (longest time.Duration, s Stats) {
	const segments, gap = 1000, 300 * time.Microsecond
	rng := rand.New(rand.NewPCG(seed, 0))
	type arrival struct {
		at time.Duration
		n  int
	}
	at := make([]arrival, 0, segments)
	var late time.Duration // of the flowcell, whose path keeps its order
	for n := range segments {
		if n%8 == 0 {
			late = time.Duration(rng.IntN(3)/2*rng.IntN(12)) * ms
		}
		if n > 100 && rng.IntN(8) == 0 && n%8 == 0 { // the first flowcells show the numbers
			continue
		}
		if n < 100 {
			late = 0
		}
		at = append(at, arrival{time.Duration(n)*gap + late, n})
	}
	b := New[int](c)
	arrived := make(map[int]time.Duration)
	var out []int
	leave := func(now time.Duration) {
		for _, n := range out {
			longest = max(longest, now-arrived[n])
		}
		out = out[:0]
	}
	expire := func(until time.Duration) {
		for due, ok := b.NextDeadline(); ok && due <= until; due, ok = b.NextDeadline() {
			out = b.Expire(due, out)
			leave(due)
		}
	}
	slices.SortStableFunc(at, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	for _, a := range at {
		expire(a.at)
		p := in(uint16(a.n/8), uint8(a.n%8), data(a.n))
		arrived[a.n] = a.at
		out = b.Push(&p, a.n, a.at, out)
		leave(a.at)
	}
	expire(time.Hour)
	return longest, b.Stats()
}
