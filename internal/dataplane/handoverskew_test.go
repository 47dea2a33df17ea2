package dataplane

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// sprayed is when the segments of a flow arrive, and which: 12 µs apart, over paths in turn, of
// which the first is late.
func sprayed(paths, segments int, late time.Duration) (at []time.Duration, which []int) {
	type arrival struct {
		at time.Duration
		n  int
	}
	var all []arrival
	for n := 1; n <= segments; n++ {
		a := arrival{time.Duration(n) * 12 * time.Microsecond, n}
		if n%paths == 0 {
			a.at += late
		}
		all = append(all, a)
	}
	slices.SortStableFunc(all, func(a, b arrival) int { return int(a.at - b.at) })
	for _, a := range all {
		at, which = append(at, a.at), append(which, a.n)
	}
	return at, which
}

// Packets that are sprayed one by one have no numbers of their own. What is known of them by
// their TCP sequence restores their order, however late one of the paths is, while the flow
// changes hands again and again. Where all paths take equally long, nothing is diverted.
func TestHandover_packetsOverALatePath(t *testing.T) {
	for _, paths := range []int{2, 4, 16} {
		for _, late := range []time.Duration{0, 30 * time.Microsecond, 500 * time.Microsecond, 2 * time.Millisecond, 9 * time.Millisecond} {
			for seed := range uint64(4) {
				t.Run(fmt.Sprintf("%d paths, one late by %v, seed %d", paths, late, seed), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(seed, 5))
					at, arrivals := sprayed(paths, 3000, late)
					s := newTwoSides(&choices{}, arrivals...)
					s.steps, s.handover.order = 0, s
					pass := func(until time.Duration) {
						for due, ok := s.order.NextDeadline(); ok && due <= until; due, ok = s.order.NextDeadline() {
							s.expire(max(0, due-s.now))
						}
						s.now = max(s.now, until)
					}
					for i, now := range at {
						pass(now)
						s.arrive()
						// The reader takes what has come since, sooner than the shortest hold ends.
						pause := i+1 == len(at) || at[i+1]-now > 20*time.Microsecond
						if pause || len(s.socket) == 4 || rng.IntN(3) == 0 {
							s.read()
						}
					}
					s.read()
					pass(s.now + time.Second)
					s.expire(2 * overdue)
					switch {
					case len(s.kernel) != len(arrivals)+1:
						t.Errorf("the kernel gets %d of %d", len(s.kernel)-1, len(arrivals))
					case !slices.IsSorted(s.kernel):
						t.Errorf("out of order: %+v", s.order.Stats())
					case (s.diverted > 0) != (late > 12*time.Microsecond) || s.diverted != s.returned:
						t.Errorf("%d are diverted, %d returned", s.diverted, s.returned)
					}
				})
			}
		}
	}
}
