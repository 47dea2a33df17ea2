package permutation

import (
	"fmt"
	"math/rand/v2"

	"weft/topology"
	"weft/topology/graph"
)

// RandomOf returns for each host of a graph the host that it sends to. It is random, but packets of
// all pairs bounce at switches of as high a tier as there is, or at any if no permutation does that.
// It is an error if there is none whose pairs all have racks of their own.
func RandomOf(g *graph.Graph, seed uint64) ([]topology.NodeID, error) {
	tiers := make([][]int, g.NumHosts()) // of the lowest bouncing switch of a pair; 0: none
	highest := 0
	for a := range tiers {
		tiers[a] = make([]int, g.NumHosts())
		for b := range tiers[a] {
			tiers[a][b] = bounceTier(g, graph.NodeID(a), graph.NodeID(b))
			highest = max(highest, tiers[a][b])
		}
	}
	for least := highest; least > 0; least-- {
		m := matching{
			rng:   rand.New(rand.NewPCG(seed, 0x7065726d)),
			sends: func(a, b int) bool { return tiers[a][b] >= least },
		}
		if to, ok := m.of(g.NumHosts()); ok {
			return to, nil
		}
	}
	return nil, fmt.Errorf("in no permutation do all of the %d hosts send to another rack that a path leads to", g.NumHosts())
}

// bounceTier returns the tier of the lowest switch where packets of a pair bounce; 0 if there is none.
func bounceTier(g *graph.Graph, a, b graph.NodeID) (least int) {
	paths := g.Paths(a, b)
	if a == b || paths.Direct {
		return 0
	}
	for _, p := range paths.List {
		if tier := g.Node(p.Bounce).Tier; least == 0 || tier < least {
			least = tier
		}
	}
	return least
}

// matching finds a receiver for each sender (Kuhn's algorithm, in a random order).
type matching struct {
	rng    *rand.Rand
	sends  func(a, b int) bool
	sender []int // of each receiver; -1: none
	tried  []bool
}

// of returns the receivers of n senders; false if there are no such.
func (m *matching) of(n int) ([]topology.NodeID, bool) {
	m.sender = make([]int, n)
	for b := range m.sender {
		m.sender[b] = -1
	}
	for _, a := range m.rng.Perm(n) {
		m.tried = make([]bool, n)
		if !m.match(a) {
			return nil, false
		}
	}
	to := make([]topology.NodeID, n)
	for b, a := range m.sender {
		to[a] = topology.NodeID(b)
	}
	return to, true
}

// match finds a receiver for a, if others take another one.
func (m *matching) match(a int) bool {
	for _, b := range m.rng.Perm(len(m.sender)) {
		if m.tried[b] || !m.sends(a, b) {
			continue
		}
		m.tried[b] = true
		if m.sender[b] < 0 || m.match(m.sender[b]) {
			m.sender[b] = a
			return true
		}
	}
	return false
}
