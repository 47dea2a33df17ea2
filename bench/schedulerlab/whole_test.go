package schedulerlab

import (
	"fmt"
	"testing"

	"weft/internal/scheduling"
	"weft/topology"
)

// Of four flows one is pinned on its whole path, one at its edge switch alone, one along two paths,
// and one by its host, which needs no switch. A flow within a pod needs no switch behind the edge.
func TestWhole(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	flow := func(src, dst topology.NodeID, protocol string) string {
		return fmt.Sprintf("%s %v:1 > %v:2", protocol, top.Node(src).Addr, top.Node(dst).Addr)
	}
	pins := func(list ...scheduling.Pinned) *scheduling.Status { return &scheduling.Status{Pinned: list} }
	nodes := map[string]*scheduling.Status{
		"e0.0":   pins(scheduling.Pinned{Flow: flow(0, 8, "tcp"), Path: 1}, scheduling.Pinned{Flow: flow(1, 9, "udp"), Path: 2}, scheduling.Pinned{Flow: flow(1, 10, "tcp"), Path: 0}, scheduling.Pinned{Flow: flow(0, 2, "tcp"), Path: 1}),
		"a0.2":   pins(scheduling.Pinned{Flow: flow(0, 8, "tcp"), Path: 1}, scheduling.Pinned{Flow: flow(1, 10, "tcp"), Path: 1}),
		"a0.3":   pins(),
		"h1.0.2": pins(scheduling.Pinned{Flow: flow(4, 12, "tcp"), Path: 3}),
	}
	if whole, pinned, err := Whole(top, nodes); whole != 3 || pinned != 5 || err != nil {
		t.Errorf("%d of %d flows, %v; want 3 of 5", whole, pinned, err)
	}
	nodes["e0.0"].Pinned[0].Flow = "tcp nonsense"
	if _, _, err := Whole(top, nodes); err == nil {
		t.Error("a flow that is none is counted")
	}
}
