package operator

import (
	"slices"
	"strings"
	"testing"

	"weft/topology"
	"weft/topology/graph"
)

// Hosts have as many uplinks as is asked for, and all paths: of their edge switches over all
// spines, or of all planes.
func TestSpecHomed(t *testing.T) {
	for _, c := range []struct {
		spec         string
		homing       Homing
		hosts, paths int
	}{
		{"leaf-spine:leaves=4,spines=4,hosts=2", Homing{Uplinks: 2}, 8, 2 * 4},
		{"leaf-spine:leaves=6,spines=2,hosts=1", Homing{Uplinks: 3}, 6, 3 * 2},
		{"leaf-spine:leaves=2,spines=2,hosts=3", Homing{Planes: 3}, 6, 3 * 2},
		{"fat-tree:k=4", Homing{Uplinks: 2}, 16, 2 * 4},
		{"leaf-spine:leaves=4,spines=2,hosts=1", Homing{Uplinks: 2, Planes: 2}, 4, 2 * 2 * 2},
	} {
		s, err := SpecHomed(parse(t, c.spec), 3, c.homing)
		if err != nil {
			t.Fatalf("%s %+v: %v", c.spec, c.homing, err)
		}
		g, err := graph.New(s)
		if err != nil {
			t.Fatalf("%s %+v: %v", c.spec, c.homing, err)
		}
		if g.NumHosts() != c.hosts {
			t.Errorf("%s %+v: %d hosts, want %d", c.spec, c.homing, g.NumHosts(), c.hosts)
		}
		last := graph.NodeID(g.NumHosts() - 1)
		if edges := g.Edges(0); len(edges) != c.homing.edges() {
			t.Errorf("%s %+v: %d uplinks", c.spec, c.homing, len(edges))
		}
		if got := len(g.Paths(0, last).List); got != c.paths {
			t.Errorf("%s %+v: %d paths, want %d", c.spec, c.homing, got, c.paths)
		}
		ports := make(map[string]bool)
		for i := range g.NumLinks() {
			l := g.Link(graph.LinkID(i))
			for end := range l.Ends {
				name := l.Ends[end] + ":" + l.Ports[end]
				if ports[name] || strings.HasSuffix(name, ":") {
					t.Errorf("%s %+v: port %s", c.spec, c.homing, name)
				}
				ports[name] = true
			}
		}
		if as := asNumbers(g); len(slices.Compact(slices.Clone(as))) != len(as) {
			t.Errorf("%s %+v: an AS twice", c.spec, c.homing)
		}
		// The host's own view: all paths, each with the uplink that it begins at.
		for _, self := range g.Node(0).Addresses {
			if _, err := topology.FromGraph(g, self); err != nil {
				t.Error(err)
			}
		}
	}
}

func asNumbers(g *graph.Graph) (list []uint32) {
	for i := g.NumHosts(); i < g.NumNodes(); i++ {
		list = append(list, g.Node(graph.NodeID(i)).AS)
	}
	slices.Sort(list)
	return list
}

func TestSpecHomed_refuses(t *testing.T) {
	for _, c := range []struct {
		spec   string
		homing Homing
		want   string
	}{
		{"leaf-spine:leaves=3,spines=2,hosts=1", Homing{Uplinks: 2}, "1 are left over"},
		{"fat-tree:k=4", Homing{Uplinks: 4}, "not wired to the same switches"},
		{"leaf-spine:leaves=4,spines=2,hosts=1", Homing{Uplinks: 4, Planes: 4}, "up to 8 links"},
		{"leaf-spine:leaves=4,spines=2,hosts=1", Homing{Uplinks: -1}, "up to 8 links"},
	} {
		if _, err := SpecHomed(parse(t, c.spec), 1, c.homing); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %v", c.spec, c.homing, err)
		}
	}
}
