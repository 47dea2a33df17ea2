package topology_test

import (
	"testing"

	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// homed is a fabric in which hosts have several uplinks, as its first host sees it.
func homed(t *testing.T, spec string, h operator.Homing) (graph.Spec, *topology.Topology) {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	s, err := operator.SpecHomed(top, 1, h)
	if err != nil {
		t.Fatal(err)
	}
	return s, seen(t, s)
}

func seen(t *testing.T, s graph.Spec) *topology.Topology {
	t.Helper()
	g, err := graph.New(graph.Spec{Nodes: append([]graph.Node(nil), s.Nodes...), Links: s.Links})
	if err != nil {
		t.Fatal(err)
	}
	top, err := topology.FromGraph(g, g.Node(0).Addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// without is the fabric without a switch and its links.
func without(s graph.Spec, name string) (left graph.Spec) {
	for _, n := range s.Nodes {
		if n.Name != name {
			left.Nodes = append(left.Nodes, n)
		}
	}
	for _, l := range s.Links {
		if l.Ends[0] != name && l.Ends[1] != name {
			left.Links = append(left.Links, l)
		}
	}
	return left
}

// live counts the live paths to the last rack by the uplink that they begin with.
func live(t *topology.Topology) map[int]int {
	by := make(map[int]int)
	for edge := range t.Racks() {
		if len(t.RackPrefixesOf(edge, false)) == 0 {
			continue
		}
		if s := t.Paths(0, edge); !s.Direct() {
			clear(by)
			for _, n := range s.Live {
				by[s.From(n)]++
			}
		}
	}
	return by
}

// Paths begin with all uplinks, and none with one beyond which all links are down.
func TestUplinks(t *testing.T) {
	for _, c := range []struct {
		homing  operator.Homing
		uplinks int
	}{{operator.Homing{Uplinks: 2}, 2}, {operator.Homing{Planes: 3}, 3}} {
		_, top := homed(t, "leaf-spine:leaves=4,spines=4,hosts=1", c.homing)
		ups := top.Uplinks()
		if len(ups) != c.uplinks || ups[1].Port != "eth2" {
			t.Fatalf("%+v: %+v", c.homing, ups)
		}
		for down := range ups {
			left := live(top.Without(top.Beyond(down)...))
			for from := range ups {
				if want := map[bool]int{false: 4, true: 0}[from == down]; left[from] != want {
					t.Errorf("%+v: without %s: %d paths by %s, want %d", c.homing, ups[down].Port, left[from], ups[from].Port, want)
				}
			}
		}
	}
}

// A rack that has lost one of its edge switches is the same rack, and the paths by the others
// stay.
func TestWithin_edgeSwitchOfARack(t *testing.T) {
	s, before := homed(t, "leaf-spine:leaves=4,spines=4,hosts=1", operator.Homing{Uplinks: 2})
	for _, c := range []struct {
		gone string
		want map[int]int
	}{{"leaf4", map[int]int{0: 4, 1: 4}}, {"leaf1", map[int]int{1: 4}}, {"spine2", map[int]int{0: 3, 1: 3}}} {
		now, more := before.Within(seen(t, without(s, c.gone)))
		if got := live(now); more || got[0] != c.want[0] || got[1] != c.want[1] {
			t.Errorf("without %s: %v, want %v; more %v", c.gone, got, c.want, more)
		}
		if _, more := seen(t, without(s, c.gone)).Within(before); !more {
			t.Errorf("with %s again: nothing new", c.gone)
		}
	}
	s, before = homed(t, "leaf-spine:leaves=2,spines=2,hosts=1", operator.Homing{Planes: 3})
	now, more := before.Within(seen(t, without(s, "p2-leaf2")))
	if got := live(now); more || got[0] != 2 || got[1] != 0 || got[2] != 2 {
		t.Errorf("a plane without its leaf: %v, more %v", got, more)
	}
}
