package fluid

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The thesis' Fig. 4.1.
func TestEstimate_workedExample(t *testing.T) {
	flows := []Pair{{0, 1}, {0, 2}, {0, 3}, {1, 0}, {1, 0}, {1, 2}, {2, 0}, {2, 3}, {3, 1}, {3, 1}}
	want := []float64{1. / 3, 1. / 3, 1. / 3, 1. / 3, 1. / 3, 1. / 3, 1. / 3, 2. / 3, 1. / 3, 1. / 3}
	var e Estimator
	for i, got := range e.Estimate(flows, 4) {
		if math.Abs(got-want[i]) > 1e-9 {
			t.Errorf("%d to %d: %v, want %v", flows[i].Src, flows[i].Dst, got, want[i])
		}
	}
}

func randomPairs(rng *rand.Rand, hosts, n int) []Pair {
	flows := make([]Pair, n)
	for i := range flows {
		src := rng.IntN(hosts)
		flows[i] = Pair{nodeID(src), nodeID((src + 1 + rng.IntN(hosts-1)) % hosts)}
	}
	return flows
}

// Demands are what a switch that never blocks would give: max-min fair rates.
func TestEstimate_isMaxMinFairAtOneSwitch(t *testing.T) {
	var e Estimator
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		hosts := 2 + rng.IntN(10)
		flows := randomPairs(rng, hosts, rng.IntN(4*hosts))
		capacity := make([]int64, 2*hosts)
		routes := make([][]int32, len(flows))
		for i := range capacity {
			capacity[i] = 1
		}
		for i, p := range flows {
			routes[i] = []int32{int32(2 * p.Src), int32(2*p.Dst + 1)}
		}
		want := maxMin(capacity, routes)
		for i, got := range e.Estimate(flows, hosts) {
			if math.Abs(got-want[i]) > 1e-6 {
				t.Fatalf("seed %d: flow %d of %v: %v, want %v", seed, i, flows, got, want[i])
			}
		}
	}
}
