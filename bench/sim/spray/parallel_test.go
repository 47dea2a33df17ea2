package spray

import (
	"fmt"
	"slices"
	"testing"

	"weft/topology"
)

// Of two links between each leaf and spine, one between leaf 1 and spine 1 is down.
func TestOverParallel(t *testing.T) {
	topo := without(t, parse(t, "leaf-spine:leaves=3,spines=4,hosts=2,host-rate=10000,fabric-rate=40000"), "e0.1-a0.2")
	for _, c := range []struct {
		name     string
		src, dst topology.NodeID
		ports    string
	}{
		{switchECMP, 0, 2, "[0 1 2 3]"}, {switchECMP, 2, 0, "[0 1 3]"}, {switchECMP, 0, 4, "[0 1 2 3]"},
		// Spine 1 sends half of what the two links up to it carry.
		{switchWCMP, 0, 2, "[0 0 1 1 2 3]"}, {switchWCMP, 2, 0, "[0 1 3]"}, {switchWCMP, 0, 4, "[0 1 2 3]"},
	} {
		n := newNextHops(topo, c.name)
		n.parallel = 2
		if got := fmt.Sprint(n.of(n.shape.edgeOf(c.src), &Packet{Src: c.src, Dst: c.dst})); got != c.ports {
			t.Errorf("%s from %d to %d: ports %s, want %s", c.name, c.src, c.dst, got, c.ports)
		}
	}
	both := without(t, topo, "e0.1-a0.3")
	n := newNextHops(both, switchECMP)
	n.parallel = 2
	if got := fmt.Sprint(n.of(n.shape.edgeOf(0), &Packet{Src: 0, Dst: 2})); got != "[0 1]" {
		t.Errorf("spine 1 has no link to leaf 1: ports %s, want [0 1]", got)
	}
}

// A spine sends down by all of its live links to a leaf, and by no other one.
func TestDown_isALiveLinkOfTheSpine(t *testing.T) {
	topo := without(t, parse(t, "leaf-spine:leaves=3,spines=6,hosts=2,host-rate=10000,fabric-rate=40000"), "e0.1-a0.4")
	for _, c := range []struct {
		parallel, port int
		dst            topology.NodeID
		want           []int
	}{{3, 3, 2, []int{3, 5}}, {3, 4, 2, []int{3, 5}}, {3, 5, 4, []int{3, 4, 5}}, {3, 0, 2, []int{0, 1, 2}}, {2, 5, 2, []int{5}}, {0, 4, 4, []int{4}}} {
		s := newSwitch(t, SwitchConfig{Topology: topo, Name: switchConga, Parallel: c.parallel}, queues{})
		var seen []int
		for hash := range uint64(200) {
			got := s.Down(c.port, &Packet{Src: 0, Dst: c.dst, Hash: mix(hash, 1)})
			if !slices.Contains(seen, got) {
				seen = append(seen, got)
			}
		}
		slices.Sort(seen)
		if !slices.Equal(seen, c.want) {
			t.Errorf("%d links to a spine, above port %d to host %d: links %v, want %v", c.parallel, c.port, c.dst, seen, c.want)
		}
	}
}

func TestCommon(t *testing.T) {
	for n, want := range []int{1, 1, 2, 6, 12, 60, 60, 420, 840} {
		if got := common(n); got != want {
			t.Errorf("%d: %d, want %d", n, got, want)
		}
	}
}
