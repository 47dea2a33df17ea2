package fluid

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Each flow gets the first path that has room, no link is overbooked, and what is
// given back is there again.
func TestFirstFit_firstWithRoomNeverMore(t *testing.T) {
	f := fabricOf(t, kinds[0])
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 3))
		fit := NewFirstFit(f)
		used := make([]float64, len(f.capacity))
		type placed struct {
			p      Pair
			path   int
			demand float64
		}
		var all []placed
		for range 60 {
			if len(all) > 0 && rng.IntN(3) == 0 {
				i := rng.IntN(len(all))
				x := all[i]
				all = slices.Delete(all, i, i+1)
				fit.Release(x.p, x.path, x.demand)
				r := f.Route(x.p.Src, x.p.Dst, x.path)
				for _, p := range between(&r) {
					used[p] -= x.demand
				}
				continue
			}
			x := placed{p: randomPairs(rng, 16, 1)[0], demand: float64(1+rng.IntN(4)) / 4}
			want := none
			for n := f.Paths(x.p.Src, x.p.Dst) - 1; n >= 0; n-- {
				r := f.Route(x.p.Src, x.p.Dst, n)
				if !slices.ContainsFunc(between(&r), func(p int32) bool { return used[p]+x.demand > 1 }) {
					want = n
				}
			}
			got, ok := fit.Place(x.p, x.demand)
			if ok != (want != none) || ok && got != want {
				t.Fatalf("seed %d: %v got path %d %v, want %d", seed, x, got, ok, want)
			}
			if x.path = got; !ok {
				continue
			}
			all = append(all, x)
			r := f.Route(x.p.Src, x.p.Dst, x.path)
			for _, p := range between(&r) {
				used[p] += x.demand
			}
		}
	}
}
