package fluid

import (
	"math"
	"math/rand/v2"
	"testing"

	"weft/hedera"
)

func randomPairs(rng *rand.Rand, hosts, n int) []Pair {
	flows := make([]Pair, n)
	for i := range flows {
		src := rng.IntN(hosts)
		flows[i] = Pair{Src: nodeID(src), Dst: nodeID((src + 1 + rng.IntN(hosts-1)) % hosts)}
	}
	return flows
}

// Demands are what a switch that never blocks would give: max-min fair rates.
func TestEstimate_isMaxMinFairAtOneSwitch(t *testing.T) {
	var e hedera.Estimator
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
