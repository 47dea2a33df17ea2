package permutation

import (
	"context"
	"fmt"
	"math/rand/v2"

	"weft/topology"
	"weft/topology/graph"
)

// RandomOf returns for each host of a graph the host that it sends to. It is random, but packets of
// all pairs bounce at switches of as high a tier as there is, or at any if no permutation does that.
// It is an error if there is none whose pairs all have racks of their own.
// It ends early if ctx does.
func RandomOf(ctx context.Context, g *graph.Graph, seed uint64) ([]topology.NodeID, error) {
	rack, racks := racksOf(g)
	tiers := make([][]int, len(racks)) // of the lowest bouncing switch between two racks; 0: none
	highest := 0
	for a := range racks {
		tiers[a] = make([]int, len(racks))
		for b := range racks {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			tiers[a][b] = bounceTier(g, racks[a], racks[b])
			highest = max(highest, tiers[a][b])
		}
	}
	for least := highest; least > 0; least-- {
		m := matching{
			rng:   rand.New(rand.NewPCG(seed, 0x7065726d)),
			sends: func(a, b int) bool { return tiers[rack[a]][rack[b]] >= least },
		}
		to, ok, err := m.of(ctx, g.NumHosts())
		if ok || err != nil {
			return to, err
		}
	}
	return nil, fmt.Errorf("in no permutation do all of the %d hosts send to another rack that a path leads to", g.NumHosts())
}

// racksOf returns each host's rack, and the edge switches of each rack. Hosts of one have the same,
// and with them the same paths.
func racksOf(g *graph.Graph) (rack []int, racks [][]graph.NodeID) {
	numbers := make(map[string]int)
	for h := range graph.NodeID(g.NumHosts()) {
		edges := g.Edges(h)
		key := fmt.Sprint(edges)
		n, ok := numbers[key]
		if !ok {
			n = len(racks)
			numbers[key], racks = n, append(racks, edges)
		}
		rack = append(rack, n)
	}
	return rack, racks
}

// bounceTier returns the tier of the lowest switch where packets between two racks bounce; 0 if
// there is none.
func bounceTier(g *graph.Graph, a, b []graph.NodeID) (least int) {
	for _, p := range g.Between(a, b).List { // empty if they have an edge switch in common
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

// of returns the receivers of n senders; false if there are no such. Its error is ctx's.
func (m *matching) of(ctx context.Context, n int) ([]topology.NodeID, bool, error) {
	m.sender = make([]int, n)
	for b := range m.sender {
		m.sender[b] = -1
	}
	for _, a := range m.rng.Perm(n) {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		m.tried = make([]bool, n)
		if !m.match(a) {
			return nil, false, nil
		}
	}
	to := make([]topology.NodeID, n)
	for b, a := range m.sender {
		to[a] = topology.NodeID(b)
	}
	return to, true, nil
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
