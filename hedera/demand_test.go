package hedera

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

// Hosts' own links may differ: twice the links is twice the demand, and a slow receiver
// leaves a fast sender's other flows more.
func TestEstimate_linksOfDifferentRates(t *testing.T) {
	flows := []Pair{{0, 1}, {0, 2}}
	e := Estimator{Links: []float64{2, 0.5, 4}}
	for i, want := range []float64{0.5, 1.5} {
		if got := e.Estimate(flows, 3)[i]; math.Abs(got-want) > 1e-9 {
			t.Errorf("flow %d: %v, want %v", i, got, want)
		}
	}
}
