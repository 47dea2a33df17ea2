package tcp

import (
	"math/rand/v2"
	"testing"
)

// TestRing_isASet compares every operation with a map, over windows that are kept
// inside and such that are not.
func TestRing_isASet(t *testing.T) {
	for _, window := range []int64{1, 63, 64, 65, 179, 256, 257, 1000, 2873} {
		rng := rand.New(rand.NewPCG(1, uint64(window))) // the window is the seed
		var r ring
		r.reset(window)
		set, base := map[int64]bool{}, rng.Int64N(1000)
		for range 600 {
			from := base + rng.Int64N(window)
			to := from + rng.Int64N(base+window-from+1)
			if rng.IntN(2) == 0 {
				to = min(from+1, to)
			}
			switch rng.IntN(4) {
			case 0:
				r.clear(from, to)
				for i := from; i < to; i++ {
					delete(set, i)
				}
			case 1, 2:
				r.set(from, to)
				for i := from; i < to; i++ {
					set[i] = true
				}
			case 3: // the window moves
				r.clear(base, from)
				for ; base < from; base++ {
					delete(set, base)
				}
			}
			check(t, &r, set, base, base+window)
			if from >= base {
				check(t, &r, set, from, to)
			}
		}
	}
}

func check(t *testing.T, r *ring, set map[int64]bool, from, to int64) {
	t.Helper()
	var n int64
	hole, start := to, from
	var members []int64
	for i := from; i < to; i++ {
		if r.has(i) != set[i] {
			t.Fatalf("has(%d) = %v", i, r.has(i))
		}
		if set[i] {
			n++
			members = append(members, i)
			continue
		}
		hole = min(hole, i)
		start = i + 1
	}
	if got := r.count(from, to); got != n {
		t.Fatalf("count(%d, %d) = %d, want %d", from, to, got, n)
	}
	if got := r.hole(from, to); got != hole {
		t.Fatalf("hole(%d, %d) = %d, want %d", from, to, got, hole)
	}
	if got := r.runStart(from, to); got != start {
		t.Fatalf("runStart(%d, %d) = %d, want %d", from, to, got, start)
	}
	for _, k := range []int{1, 2, 3, len(members)} {
		if k < 1 || k > len(members) {
			continue
		}
		if got, want := r.fromTop(from, to, k), members[len(members)-k]; got != want {
			t.Fatalf("fromTop(%d, %d, %d) = %d, want %d", from, to, k, got, want)
		}
	}
}

func TestRing_resetEmptiesAndKeepsItsMemory(t *testing.T) {
	var r ring
	for _, window := range []int64{1000, 100} {
		r.reset(window)
		r.set(5, 90)
		if n := testing.AllocsPerRun(10, func() { r.reset(1024); r.reset(10); r.reset(window) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
		if n := r.count(0, window); n != 0 {
			t.Errorf("%d segments after reset", n)
		}
	}
}
