// Package permutation is the load of the papers: every host sends one bulk TCP
// stream to another, every host receives one, and small requests run beside
// them (DRB §5.1, §6.2).
package permutation

import (
	"math/rand/v2"

	"weft/topology"
)

// Random returns for each host the one that it sends to, at random but so that
// every pair is in different pods and all packets cross the core layer.
func Random(t *topology.Topology, seed uint64) []topology.NodeID {
	rng := rand.New(rand.NewPCG(seed, 0x7065726d))
	n := t.NumHosts()
	to := make([]topology.NodeID, n)
	for i, j := range rng.Perm(n) {
		to[i] = topology.NodeID(j)
	}
	crosses := func(a int, b topology.NodeID) bool {
		return len(t.Paths(topology.NodeID(a), b).Bases) == 2
	}
	// Swap the receivers of senders that stay in their pod with others that
	// leaves both across. With two pods or more there always are some.
	for i := range to {
		for !crosses(i, to[i]) {
			j := rng.IntN(n)
			if crosses(i, to[j]) && crosses(j, to[i]) {
				to[i], to[j] = to[j], to[i]
			}
		}
	}
	return to
}
