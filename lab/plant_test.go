package lab

import (
	"slices"
	"strings"
	"testing"

	"weft/internal/kernel/kerneltest"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// bundled has names with dashes, links without ports, and a bundle.
const bundled = `nodes:
  s-1: {tier: 2, addresses: [172.16.0.1]}
  l-1: {tier: 1, prefixes: [192.168.1.64/26], as: 65001}
  l-2: {tier: 1, prefixes: [192.168.2.64/26]}
  h: {addresses: [192.168.1.66]}
links:
  - {ends: [h, l-1], ports: [eth1, p0]}
  - {ends: [l-1, s-1], count: 2}
  - {ends: [s-1, l-2], ports: [swp9, swp1]}
`

// graphConfig is that of a lab of a graph, completed.
func graphConfig(t *testing.T, text string) (Config, error) {
	t.Helper()
	g, err := graph.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return Config{Name: "x", Graph: g}.complete()
}

func TestPlant_names(t *testing.T) {
	c, err := graphConfig(t, bundled)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"h-l-1": {"h-l-1"}, "l-1-h": {"h-l-1"}, "h:eth1": {"h-l-1"}, "l-1:p0": {"h-l-1"},
		"s-1-l-1": {"l-1:p1-s-1:p0", "l-1:p2-s-1:p1"}, "s-1:p1": {"l-1:p2-s-1:p1"}, "s-1:p0-l-1:p1": {"l-1:p1-s-1:p0"},
		"s-1": {"l-1:p1-s-1:p0", "l-1:p2-s-1:p1", "l-2-s-1"}, "192.168.1.66": {"h-l-1"},
	} {
		target, err := c.target(name)
		var got []string
		for _, l := range target.links {
			got = append(got, c.plant().LinkName(l))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, want)
		}
		if again, err := c.target(target.name); err != nil || again.name != target.name || !slices.Equal(again.links, target.links) {
			t.Errorf("%s is called %s, which is %v, %v", name, target.name, again, err)
		}
	}
	if _, err := c.target("l-1-l-2"); err == nil || !strings.Contains(err.Error(), "no such node or link") {
		t.Error(err)
	}
	var as []uint32
	for id := range c.Graph.NumNodes() {
		as = append(as, c.Graph.Node(graph.NodeID(id)).AS)
	}
	if want := []uint32{0, 65001, firstAS, firstAS + 1}; !slices.Equal(as, want) {
		t.Errorf("AS numbers %v, want %v", as, want)
	}
}

// A graph and the computed fabric that it was made of are the same plant.
func TestPlant_asComputed(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4", "leaf-spine:leaves=3,spines=2,hosts=2"} {
		top := kerneltest.Topology(t, spec)
		g, err := graph.New(operator.Spec(top, 1))
		if err != nil {
			t.Fatal(err)
		}
		p := graphPlant{g}
		for n := range top.Nodes() {
			if got, want := p.Ports(n.ID), top.Ports(n.ID); !slices.Equal(got, want) {
				t.Errorf("%s: ports %v, want %v", n.Name, got, want)
			}
			if p.Node(n.ID).Layer != n.Layer {
				t.Errorf("%s: %v", n.Name, p.Node(n.ID))
			}
		}
		for l := range top.Links() {
			if got := p.Link(l.ID); got != l {
				t.Errorf("%v, want %v", got, l)
			}
		}
	}
}

func TestPlant_refused(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"h:", "-h:", "node -h"},
		{"h:", strings.Repeat("h", 60) + ":", "names of up to 48 letters"},
		{"eth1", "lo", "port lo of"},
		{"eth1", "ethernet-1/1", "port ethernet-1/1 of"},
		{"eth1", "sixteen-letters-", "up to 15 letters"},
	} {
		text := strings.Replace(bundled, c.old, c.new, 1)
		if c.old == "h:" {
			text = strings.Replace(text, "[h,", "["+strings.TrimSuffix(c.new, ":")+",", 1)
		}
		if _, err := graphConfig(t, text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.new, err, c.want)
		}
	}
	g, err := graph.Parse([]byte(bundled))
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]Config{
		"both given":           {Graph: g, Topology: kerneltest.Topology(t, "fat-tree:k=2")},
		"Only is for":          {Graph: g, Only: []topology.NodeID{1}},
		"SRv6 is for":          {Graph: g, SRv6: true},
		"BFD is for the":       {Topology: kerneltest.Topology(t, "fat-tree:k=2"), BFD: true},
		"Topology is missing;": {},
	} {
		if _, err := c.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// The state of a lab makes the same lab again.
func TestPlant_state(t *testing.T) {
	c, err := graphConfig(t, bundled)
	if err != nil {
		t.Fatal(err)
	}
	c.BFD = true
	again, err := c.settings().config("x")
	if err != nil || again.settings() != c.settings() {
		t.Errorf("%v, %v; want %v", again.settings(), err, c.settings())
	}
}
