package failover

import (
	"math"
	"testing"

	"weft/bench/permutation"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// The graph of a computed fabric has the same ideals as the fabric, whatever its links' rates.
func TestIdealOfGraph_isThatOfTheFabric(t *testing.T) {
	for _, spec := range []string{
		"fat-tree:k=4",
		"fat-tree:k=4,hosts=4",
		"fat-tree:k=4,host-rate=8,fabric-rate=8,core-rate=8,e0.0-a0.2=2",
		"leaf-spine:leaves=3,spines=2,hosts=3",
		"leaf-spine:leaves=2,spines=3,hosts=2,host-rate=10,fabric-rate=4",
	} {
		fabric, err := topology.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		g, err := graph.New(operator.Spec(fabric, 1))
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(5) {
			streams := permutation.Streams(permutation.Random(fabric, seed))
			last := topology.NodeID(fabric.NumHosts() - 1)
			streams = append(streams, permutation.Stream{From: 0, To: 1}, permutation.Stream{From: 1, To: last}, permutation.Stream{From: 0, To: last})
			want, got := IdealOf(fabric, streams, 8), IdealOfGraph(g, streams, 8)
			for i := range want {
				if math.Abs(got[i]-want[i]) > 1e-6*want[i] || want[i] == 0 {
					t.Errorf("%s, seed %d: stream %d of %+v has %g, in the fabric %g", spec, seed, i, streams[i], got[i], want[i])
				}
			}
		}
	}
}
