package hedera

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
		used := make([]float64, len(f.Capacity()))
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
				for _, u := range f.AppendRoute(nil, x.p.Src, x.p.Dst, x.path) {
					used[u.Port] -= x.demand
				}
				continue
			}
			x := placed{p: randomPairs(rng, 16, 1)[0], demand: float64(1+rng.IntN(4)) / 4}
			const none = -1
			want := none
			for n := f.Paths(x.p.Src, x.p.Dst) - 1; n >= 0; n-- {
				r := f.AppendRoute(nil, x.p.Src, x.p.Dst, n)
				if !slices.ContainsFunc(r, func(u Use) bool { return used[u.Port]+x.demand > 1 }) {
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
			for _, u := range f.AppendRoute(nil, x.p.Src, x.p.Dst, x.path) {
				used[u.Port] += x.demand
			}
		}
	}
}
