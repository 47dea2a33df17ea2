package thesis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"weft/bench/sim/workload"
	"weft/hedera"
	"weft/topology"
)

// fatTree is of gigabit links.
func fatTree(k int) string {
	return fmt.Sprintf("fat-tree:k=%d,host-rate=1000,fabric-rate=1000,core-rate=1000", k)
}

// uniform draws flows between any two hosts; where flows are a multiple of hosts,
// each host sends as many.
func uniform(t *topology.Topology, flows int, seed uint64) ([]hedera.Pair, error) {
	to, err := workload.Uniform(t, workload.Anywhere)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 0x756e69666f726d))
	all := make([]hedera.Pair, flows)
	for i := range all {
		src := topology.NodeID(i % t.NumHosts())
		all[i] = hedera.Pair{Src: src, Dst: to(src, rng)}
	}
	return all, nil
}

// exponential is a distribution of sizes by 400 quantiles.
func exponential(mean float64) (*workload.CDF, error) {
	const points = 400
	var text strings.Builder
	for i := range points {
		p := float64(i) / points
		fmt.Fprintf(&text, "%.0f %g\n", -mean*math.Log(1-p), p)
	}
	// The last piece has a mean of one more than where it begins.
	fmt.Fprintf(&text, "%.0f 1\n", mean*(math.Log(points)+2))
	return workload.ParseCDF([]byte(text.String()))
}

// total sums rates.
func total(rates []float64) (sum float64) {
	for _, r := range rates {
		sum += r
	}
	return sum
}

// derive makes a seed of its own for the nth of something.
func derive(seed uint64, n int) uint64 { return seed + uint64(n)*1_000_003 }
