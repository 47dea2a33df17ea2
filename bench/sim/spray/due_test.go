package spray

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestDues_matchesSearch(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{1, 2, 3, 8, 21} {
		d := newDues(n)
		list := make([]time.Duration, n)
		for i := range list {
			list[i] = Never
		}
		for range 500 {
			i, at := rng.IntN(n), time.Duration(rng.IntN(9))
			if at == 8 {
				at = Never
			}
			d.set(i, at)
			list[i] = at
			first := 0
			for j := range list {
				if list[j] < list[first] {
					first = j
				}
				if d.of(j) != list[j] {
					t.Fatalf("seed %d: %d of %d is due at %v, want %v", seed, j, n, d.of(j), list[j])
				}
			}
			if d.next() != list[first] || list[first] < Never && d.first() != first {
				t.Fatalf("seed %d: first of %v is %d at %v", seed, list, d.first(), d.next())
			}
		}
	}
}
