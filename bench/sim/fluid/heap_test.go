package fluid

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestHeap_givesInOrder(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 9))
		var h heap
		var want []item
		for i := range int32(200) {
			x := item{key: float64(rng.IntN(20)), id: i}
			h.push(x)
			want = append(want, x)
		}
		odd := func(x item) bool { return x.id%2 == 1 }
		h.keep(odd)
		want = slices.DeleteFunc(want, func(x item) bool { return !odd(x) })
		slices.SortFunc(want, func(a, b item) int {
			if a.before(b) {
				return -1
			}
			return 1
		})
		for i, x := range want {
			if got := h.pop(); got != x {
				t.Fatalf("seed %d: %d: %v, want %v", seed, i, got, x)
			}
		}
		if h.len() != 0 {
			t.Errorf("seed %d: %d left", seed, h.len())
		}
	}
}
