package paths

import (
	"fmt"
	"slices"
	"testing"

	"weft/drb"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/graphtest"
)

// On any Clos digit reversal is fair at each layer (DRB §3.1.2): of the visits to a switch on
// the way up, each switch above it has had its share at any time, rounded up or down. A
// share is in proportion to the paths over it.
func TestNewGroup_fairOnAnyClos(t *testing.T) {
	orders := 0
	for seed := range uint64(200) {
		g, err := graph.New(graphtest.Random(seed))
		if err != nil {
			t.Fatal(err)
		}
		for h := range graph.NodeID(g.NumHosts()) {
			v, err := topology.FromGraph(g, g.Node(h).Addresses[0])
			if err != nil {
				t.Fatal(err)
			}
			for to := range graph.NodeID(g.NumHosts()) {
				paths := g.Paths(h, to).List
				set := v.PathsTo(0, g.Node(to).Addresses[0])
				if len(paths) == 0 {
					continue
				}
				group := NewGroup(drb.DigitReversal, set, nil)
				order := group.Components[0].Order
				if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, group.Weighted) {
					t.Fatalf("seed %d: the order %v is not of %v", seed, order, group.Weighted)
				}
				orders++
				for depth := range len(paths[0].Digits) {
					checkShares(t, seed, order, depth, func(n int) []int { return paths[n].Digits })
				}
				for n, p := range paths {
					if want := append(p.Digits, 0)[0]; len(paths) > 16 && int(group.Tags[n]) != want%16 && want < 16 {
						t.Fatalf("seed %d: path %d has tag %d, its uplink is %d", seed, n, group.Tags[n], want)
					}
				}
			}
		}
	}
	if orders < 1000 {
		t.Errorf("only %d orders", orders)
	}
}

// checkShares looks at the visits to each switch at a depth on the way up.
func checkShares(t *testing.T, seed uint64, order []int, depth int, digits func(n int) []int) {
	t.Helper()
	visits := map[string][]int{} // by the way to the switch: the choices there
	for _, n := range order {
		at := fmt.Sprint(digits(n)[:depth])
		visits[at] = append(visits[at], digits(n)[depth])
	}
	for at, list := range visits {
		all := map[int]int{}
		for _, d := range list {
			all[d]++
		}
		seen := map[int]int{}
		for i, d := range list {
			seen[d]++
			for branch, w := range all {
				if low, high := (i+1)*w/len(list), ((i+1)*w+len(list)-1)/len(list); seen[branch] < low || seen[branch] > high {
					t.Fatalf("seed %d: at %s of %v, branch %d has had %d of %d visits", seed, at, list, branch, seen[branch], i+1)
				}
			}
		}
	}
}
