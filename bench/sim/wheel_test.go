package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/internal/timerq"
)

// TestWheel_order compares with a list that is sorted stably after every push.
func TestWheel_order(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newWheel(1 << (10 + rng.IntN(12)))
		var want []event
		now, pushed := int64(0), uint32(0)
		// Near, in the same slot, in the next turns, far beyond, and at once.
		spans := []int64{1, 1 << 8, 1 << 16, 1 << 24, 1 << 32, 1 << 42, 1 << 47}
		for step := range 3000 {
			if len(want) == 0 || rng.IntN(100) < 52 && step < 2500 {
				at := now + rng.Int64N(spans[rng.IntN(len(spans))])
				if rng.IntN(8) == 0 && len(want) > 0 {
					at = want[rng.IntN(len(want))].at
				}
				e := event{at: at, what: pushed}
				pushed++
				w.push(e)
				i, _ := slices.BinarySearchFunc(want, at, func(e event, at int64) int {
					if e.at <= at {
						return -1
					}
					return 1
				})
				want = slices.Insert(want, i, e)
				continue
			}
			got, ok := w.pop()
			if !ok || got != want[0] {
				t.Fatalf("seed %d, step %d: popped %v, %v; want %v", seed, step, got, ok, want[0])
			}
			now = got.at
			want = want[1:]
		}
		for range want {
			w.pop()
		}
		if e, ok := w.pop(); ok {
			t.Fatalf("seed %d: popped %v of an empty wheel", seed, e)
		}
	}
}

func TestWheel_allocatesNothing(t *testing.T) {
	w := newWheel(1 << 19)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range uint32(5000) {
		w.push(event{at: rng.Int64N(50e6), what: i})
	}
	step := func() {
		for range 20000 {
			e, _ := w.pop()
			e.at += rng.Int64N(50e6)
			w.push(e)
		}
	}
	step()
	if n := testing.AllocsPerRun(5, step); n > 1 { // a chunk, now and then
		t.Errorf("%v allocations in 20,000 events", n)
	}
}

// BenchmarkWheel holds so many events, each of which, when its time comes, is pushed
// again, a hop of DRB's fat-tree later.
func BenchmarkWheel(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		rng := rand.New(rand.NewPCG(1, 1))
		ahead := make([]int64, 1<<16)
		for i := range ahead {
			ahead[i] = 5_320_000 + rng.Int64N(40_000_000)
		}
		b.Run(fmt.Sprintf("wheel/events=%d", n), func(b *testing.B) {
			w := newWheel(5_320_000)
			for i := range n {
				w.push(event{at: ahead[i&0xffff]})
			}
			for i := range b.N {
				e, _ := w.pop()
				e.at += ahead[i&0xffff]
				w.push(e)
			}
		})
		b.Run(fmt.Sprintf("heap/events=%d", n), func(b *testing.B) {
			var h timerq.Queue[event] // of picoseconds
			for i := range n {
				h.Add(time.Duration(ahead[i&0xffff]), event{at: ahead[i&0xffff]})
			}
			for i := range b.N {
				e := h.Pop()
				e.at += ahead[i&0xffff]
				h.Add(time.Duration(e.at), e)
			}
		})
	}
}
