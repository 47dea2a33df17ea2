package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
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

// heap4 is a 4-ary heap of events with their numbers, for ties: what the wheel is
// measured against.
type heap4 struct {
	list   []numbered
	pushed uint64
}

type numbered struct {
	event
	number uint64
}

func (a *numbered) before(b *numbered) bool {
	return a.at < b.at || a.at == b.at && a.number < b.number
}

func (h *heap4) push(e event) {
	h.pushed++
	n := numbered{e, h.pushed}
	h.list = append(h.list, n)
	i := len(h.list) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !n.before(&h.list[up]) {
			break
		}
		h.list[i] = h.list[up]
		i = up
	}
	h.list[i] = n
}

func (h *heap4) pop() event {
	top := h.list[0].event
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	n := len(h.list)
	if n == 0 {
		return top
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= n {
			break
		}
		for c := child + 1; c < min(child+4, n); c++ {
			if h.list[c].before(&h.list[child]) {
				child = c
			}
		}
		if !h.list[child].before(&last) {
			break
		}
		h.list[i] = h.list[child]
		i = child
	}
	h.list[i] = last
	return top
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
			h := new(heap4)
			for i := range n {
				h.push(event{at: ahead[i&0xffff]})
			}
			for i := range b.N {
				e := h.pop()
				e.at += ahead[i&0xffff]
				h.push(e)
			}
		})
	}
}
