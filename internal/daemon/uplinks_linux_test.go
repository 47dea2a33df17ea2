package daemon

import (
	"slices"
	"strings"
	"testing"

	"weft/internal/hostsetup"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// homed is a fabric of three planes as its first host sees it; edit changes its links.
func homed(t *testing.T, edit func(*graph.Link)) *topology.Topology {
	t.Helper()
	s, err := operator.SpecHomed(kerneltest.Topology(t, "leaf-spine:leaves=2,spines=2,hosts=1"), 1, operator.Homing{Planes: 3})
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Links {
		edit(&s.Links[i])
	}
	g, err := graph.New(s)
	if err != nil {
		t.Fatal(err)
	}
	top, err := topology.FromGraph(g, g.Node(0).Addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// Which devices are in use, or why those named cannot be.
func TestConfig_devices(t *testing.T) {
	named := homed(t, func(*graph.Link) {})
	unnamed := homed(t, func(l *graph.Link) { l.Ports = [2]string{} })
	for _, c := range []struct {
		text   string
		fabric *topology.Topology
		want   []string // nil: one uplink
		err    string
	}{
		{"mode: offload\npolicy: drb", named, []string{"eth1", "eth2", "eth3"}, ""},
		{"mode: offload\npolicy: drb\nuplink: [a, b, c]", named, []string{"a", "b", "c"}, ""},
		{"mode: offload\npolicy: drb\nuplink: [a, b, c]", unnamed, []string{"a", "b", "c"}, ""},
		{"mode: offload\npolicy: drb", unnamed, nil, ""},
		{"mode: offload\npolicy: drb\nuplink: eth2", named, nil, ""},
		{"mode: gateway", named, nil, ""}, // as it does with one, whatever others there are
		{"mode: offload\npolicy: drb\nuplink: [a, b]", named, nil, "wired to 3 edge switches of fat-tree:k=4 (p1-leaf1, p2-leaf1, p3-leaf1)"},
		{"mode: offload\npolicy: drb\nuplink: [a, b]", kerneltest.Topology(t, "fat-tree:k=4"), nil, "have one uplink; name one"},
	} {
		config, err := parseText(c.text)
		if err != nil {
			t.Fatal(err)
		}
		config.fabric = c.fabric
		got, err := config.devices()
		if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %v, %v", c.text, got, err)
		}
	}
}

// No path begins with an uplink that is down, without carrier or gone.
func TestPlace_lit(t *testing.T) {
	top := homed(t, func(*graph.Link) {})
	up := hostsetup.Uplink{Index: 1, Up: true}
	for _, dead := range []hostsetup.Uplink{{Index: 1}, {Index: 1, Up: true, Dark: true}, {}} {
		p := place{ways: []way{{Uplink: up}, {Uplink: dead}, {Uplink: up}}}
		left := 0
		for edge := range top.Racks() {
			s := p.lit(top).Paths(0, edge)
			for _, n := range s.Live {
				if left++; s.From(n) == 1 {
					t.Errorf("%+v: path %d", dead, n)
				}
			}
		}
		if left != 4 {
			t.Errorf("%+v: %d paths left, want 4", dead, left)
		}
	}
	if p := (place{ways: []way{{Uplink: up}}}); p.lit(top) != top || p.lit(nil) != nil {
		t.Error("a fabric is changed though nothing is down")
	}
}
