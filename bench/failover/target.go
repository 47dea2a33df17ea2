package failover

import (
	"fmt"
	"math/rand/v2"

	"weft/bench/permutation"
	"weft/topology"
)

// top is the layer whose switches bounce what crosses the fabric: the cores,
// or the spines of a fabric that has no more than one pod.
func top(t *topology.Topology) topology.Layer {
	return t.Node(topology.NodeID(t.NumNodes() - 1)).Layer
}

// targets returns what must fail, one after the other: a switch of the top layer
// and a link below one in turns. Each kind is in an order by the seed, and each
// target comes as often as any other.
func targets(t *topology.Topology, n int, seed uint64) []string {
	var nodes, links []string
	for node := range t.Nodes() {
		if node.Layer == top(t) {
			nodes = append(nodes, node.Name)
		}
	}
	for l := range t.Links() {
		if t.Node(l.B).Layer == top(t) {
			links = append(links, t.LinkName(l.ID))
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0x6661696c))
	shuffled := [][]string{shuffle(rng, nodes), shuffle(rng, links)}
	var all []string
	for i := range n {
		from := shuffled[i%2]
		all = append(all, from[i/2%len(from)])
	}
	return all
}

func shuffle(rng *rand.Rand, s []string) []string {
	rng.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
	return s
}

// permute returns for each host the one that it sends to, so that all traffic
// crosses the top layer.
func permute(t *topology.Topology, seed uint64) ([]topology.NodeID, error) {
	if last := topology.NodeID(t.NumHosts() - 1); t.Paths(0, last).Direct() {
		return nil, fmt.Errorf("%v has one rack: nothing crosses a switch that could fail", t)
	}
	return permutation.Random(t, seed), nil
}
