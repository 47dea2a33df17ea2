package fluid

import (
	"math"
	"math/rand/v2"
	"testing"
)

// relaxed finds the same rates by going round until nothing changes, in any order
// of ports.
func relaxed(capacity []float64, routes []Route, rate float64) []float64 {
	passes := make([]float64, len(capacity))
	for i := range passes {
		passes[i] = 1
	}
	for range 20 {
		come := make([]float64, len(capacity))
		for _, r := range routes {
			x := rate
			for _, p := range r.list() {
				come[p] += x
				x *= passes[p]
			}
		}
		for p := range passes {
			passes[p] = min(1, capacity[p]/max(come[p], 1e-12))
		}
	}
	arrive := make([]float64, len(routes))
	for i, r := range routes {
		arrive[i] = rate
		for _, p := range r.list() {
			arrive[i] *= passes[p]
		}
	}
	return arrive
}

func TestOpenLoop_isTheFixedPoint(t *testing.T) {
	for _, spec := range kinds {
		f := fabricOf(t, spec)
		for seed := range uint64(30) {
			rng := rand.New(rand.NewPCG(seed, 5))
			var routes []Route
			for _, p := range randomPairs(rng, f.Hosts(), 3*f.Hosts()) {
				routes = append(routes, f.Route(p.Src, p.Dst, rng.IntN(f.Paths(p.Src, p.Dst))))
			}
			rate := f.capacity[0] * 4 * rng.Float64()
			want := relaxed(f.capacity, routes, rate)
			for i, c := range f.OpenLoop(routes, rate) {
				if got := c.Arrives(&routes[i]); math.Abs(got-want[i]) > 1e-6 {
					t.Fatalf("%s, seed %d: flow %d: %v, want %v", spec, seed, i, got, want[i])
				}
			}
		}
	}
}
