// Package permutation is the load of the papers: every host sends one bulk TCP
// stream to another, every host receives one, and small requests run beside
// them (DRB §5.1, §6.2).
package permutation

import (
	"math/rand/v2"

	"weft/topology"
)

// Stream is what one host sends to another.
type Stream struct{ From, To topology.NodeID }

// Streams are those from each host i to host to[i].
func Streams(to []topology.NodeID) []Stream {
	all := make([]Stream, len(to))
	for i, j := range to {
		all[i] = Stream{topology.NodeID(i), j}
	}
	return all
}

// Random returns for each host the host that it sends to. It is random, but all pairs are
// as far apart as the fabric allows: in different pods, so that all packets cross the
// core layer, or in different racks if there is one pod.
func Random(t *topology.Topology, seed uint64) []topology.NodeID {
	rng := rand.New(rand.NewPCG(seed, 0x7065726d))
	n := t.NumHosts()
	to := make([]topology.NodeID, n)
	for i, j := range rng.Perm(n) {
		to[i] = topology.NodeID(j)
	}
	far := len(t.Paths(0, topology.NodeID(n-1)).Bases)
	crosses := func(a int, b topology.NodeID) bool {
		return len(t.Paths(topology.NodeID(a), b).Bases) == far && (far > 0 || n == 1 || a != int(b))
	}
	// Swap the receivers of senders that stay near with others that leaves both
	// far. With two pods or racks, or two hosts, there always are some.
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
