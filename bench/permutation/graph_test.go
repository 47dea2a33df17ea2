package permutation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// In the graph of a fat-tree all pairs are as far apart as in the fat-tree itself.
func TestRandomOf_isAPermutationAcrossPods(t *testing.T) {
	fatTree, err := topology.FatTree(4)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(operator.Spec(fatTree, 1))
	if err != nil {
		t.Fatal(err)
	}
	orders := make(map[string]bool)
	for seed := range uint64(20) {
		to, err := RandomOf(t.Context(), g, seed)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := RandomOf(t.Context(), g, seed)
		if !slices.Equal(to, again) {
			t.Fatalf("seed %d: two permutations: %v, %v", seed, to, again)
		}
		seen := make(map[topology.NodeID]bool)
		for from, b := range to {
			paths := g.Paths(graph.NodeID(from), graph.NodeID(b))
			if seen[b] || paths.Direct || len(paths.List) != 4 {
				t.Fatalf("seed %d: %d sends to %d over %d paths; it receives twice: %t", seed, from, b, len(paths.List), seen[b])
			}
			seen[b] = true
		}
		orders[fmt.Sprint(to)] = true
	}
	if len(orders) < 10 {
		t.Errorf("20 seeds give %d permutations", len(orders))
	}
}

// unequal is a leaf-spine with so many hosts in each rack.
func unequal(t *testing.T, racks ...int) *graph.Graph {
	t.Helper()
	nodes, links := "nodes:\n  spine: {tier: 2, addresses: [172.16.0.1]}\n", "links:\n"
	for r, hosts := range racks {
		nodes += fmt.Sprintf("  leaf%d: {tier: 1, prefixes: [192.168.%d.0/26]}\n", r, r)
		links += fmt.Sprintf("  - {ends: [leaf%d, spine]}\n", r)
		for h := range hosts {
			nodes += fmt.Sprintf("  h%d-%d: {tier: 0, addresses: [192.168.%d.%d]}\n", r, h, r, h+2)
			links += fmt.Sprintf("  - {ends: [h%d-%d, leaf%d]}\n", r, h, r)
		}
	}
	g, err := graph.Parse([]byte(nodes + links))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Half of the hosts are in one rack: each permutation must send from there to all others, and back.
func TestRandomOf_unequalRacks(t *testing.T) {
	g := unequal(t, 3, 1, 2)
	for seed := range uint64(20) {
		to, err := RandomOf(t.Context(), g, seed)
		if err != nil {
			t.Fatal(err)
		}
		for from, b := range to {
			if g.Paths(graph.NodeID(from), graph.NodeID(b)).Direct {
				t.Errorf("seed %d: %s sends to %s", seed, g.Node(graph.NodeID(from)).Name, g.Node(graph.NodeID(b)).Name)
			}
		}
	}
	if to, err := RandomOf(t.Context(), unequal(t, 3, 1), 1); err == nil || !strings.Contains(err.Error(), "4 hosts") {
		t.Errorf("three of four hosts in a rack: %v, %v", to, err)
	}
}

// Who interrupts it need not wait for all paths of a large graph.
func TestRandomOf_interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if to, err := RandomOf(ctx, unequal(t, 1, 1), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", to, err)
	}
}
