package fluid

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// flowsPerPort counts the flows at ports up from switches.
func flowsPerPort(f *Fabric, routes []Route) map[int32]int {
	n := make(map[int32]int)
	for _, r := range routes {
		for _, p := range between(&r) {
			if p%2 == 0 {
				n[p]++
			}
		}
	}
	return n
}

// With a flow per host a switch of a fat-tree has a port up for each.
func TestClassifier_avoidsLocalCollisions(t *testing.T) {
	f := fabricOf(t, kinds[0])
	for seed := range uint64(50) {
		to := rand.New(rand.NewPCG(seed, 6)).Perm(16)
		var flows []Pair
		for h, d := range to {
			if h/4 != d/4 {
				flows = append(flows, Pair{Src: nodeID(h), Dst: nodeID(d)})
			}
		}
		c := NewClassifier(f, flows, 1000, seed)
		for round := range 3 {
			for p, n := range flowsPerPort(f, c.Routes()) {
				if n > 1 {
					t.Fatalf("seed %d, round %d: %d flows at port %d", seed, round, n, p)
				}
			}
			c.Rearrange()
		}
	}
}

// Three flows at one port and none at the other: two of them stay.
func TestRearrange_movesFromTheFullestPort(t *testing.T) {
	f := fabricOf(t, "fat-tree:k=4,hosts=4,host-rate=1000,fabric-rate=1000,core-rate=1000")
	flows := []Pair{{Src: 0, Dst: 31}, {Src: 1, Dst: 23}, {Src: 2, Dst: 15}}
	c := NewClassifier(f, flows, 100, 1)
	for i := range c.up {
		c.up[i] = [2]int{0, 0}
	}
	c.Rearrange()
	var edge []int
	for _, up := range c.up {
		edge = append(edge, up[0])
	}
	slices.Sort(edge)
	if !slices.Equal(edge, []int{0, 0, 1}) {
		t.Errorf("the edge switch's ports: %v, want two flows at 0, one at 1", edge)
	}
}
