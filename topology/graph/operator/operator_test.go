package operator

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weft/topology"
	"weft/topology/graph"
)

func parse(t *testing.T, spec string) *topology.Topology {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func TestSpec_isAGraphOfTheSameWiring(t *testing.T) {
	for _, spec := range []string{"leaf-spine:leaves=4,spines=4,hosts=2", "fat-tree:k=4", "leaf-spine:leaves=2,spines=1,hosts=120",
		"leaf-spine:leaves=600,spines=2,hosts=1", "fat-tree:k=4,fabric-rate=40,e0.0-a0.2=10", "vl2:d0=2,d1=4,d2=4"} {
		top := parse(t, spec)
		for seed := range uint64(5) {
			g, err := graph.New(Spec(top, seed))
			if err != nil {
				t.Fatalf("%s, seed %d: %v", spec, seed, err)
			}
			if g.NumHosts() != top.NumHosts() || g.NumNodes() != top.NumNodes() || g.NumLinks() != top.NumLinks() {
				t.Errorf("%s, seed %d: %d hosts, %d nodes, %d links", spec, seed, g.NumHosts(), g.NumNodes(), g.NumLinks())
			}
			for l := range top.Links() { // hosts first, then by layer: the numbers are the same
				low, high := g.Ends(graph.LinkID(l.ID))
				if low != graph.NodeID(l.A) || high != graph.NodeID(l.B) || g.Link(graph.LinkID(l.ID)).Rate != top.Rate(l.ID) {
					t.Fatalf("%s: link %s is %v", spec, top.LinkName(l.ID), g.Link(graph.LinkID(l.ID)))
				}
			}
			if strings.HasPrefix(spec, "vl2") {
				continue // a path of a graph is a bouncing switch, not one of the several that it is in VL2
			}
			for _, pair := range [][2]int{{0, 1}, {0, top.NumHosts() - 1}} {
				a, b := topology.NodeID(pair[0]), topology.NodeID(pair[1])
				if got, want := len(g.Paths(graph.NodeID(a), graph.NodeID(b)).List), top.Paths(a, b).Count(); got != want && top.EdgeOf(a) != top.EdgeOf(b) {
					t.Errorf("%s, seed %d: %d paths from host %d to %d, want %d", spec, seed, got, a, b, want)
				}
			}
		}
	}
}

// The plan is what package doc says, and both networks of IPv4 are in use.
func TestSpec_addresses(t *testing.T) {
	net := netip.MustParsePrefix
	seen := make(map[netip.Prefix]bool)
	for seed := range uint64(20) {
		s := Spec(parse(t, "fat-tree:k=4"), seed)
		as := make(map[uint32]bool)
		racks := make(map[netip.Prefix]bool)
		for _, n := range s.Nodes {
			if len(n.Addresses) != 2 || !n.Addresses[0].Is4() || !n.Addresses[1].Is6() {
				t.Fatalf("seed %d: %s has %v", seed, n.Name, n.Addresses)
			}
			if n.Tier == 0 {
				for _, a := range n.Addresses {
					inRack := false
					for p := range racks {
						inRack = inRack || p.Contains(a) && a != p.Addr() && a != p.Addr().Next()
					}
					if !inRack {
						t.Errorf("seed %d: %s has %v, which is in no rack, or its gateway's", seed, n.Name, a)
					}
				}
				continue
			}
			if n.AS < firstAS || n.AS > 4294967294 || as[n.AS] {
				t.Errorf("seed %d: %s has AS %d", seed, n.Name, n.AS)
			}
			as[n.AS] = true
			if !net("172.16.0.0/12").Contains(n.Addresses[0]) || !net("2001:db8:ffff::/48").Contains(n.Addresses[1]) {
				t.Errorf("seed %d: %s has %v", seed, n.Name, n.Addresses)
			}
			if (n.Tier == 1) != (len(n.Prefixes) == 2) {
				t.Errorf("seed %d: %s has %v", seed, n.Name, n.Prefixes)
			}
			for i, p := range n.Prefixes {
				racks[p] = true
				switch {
				case i == 1 && p.Bits() == 64 && net("2001:db8::/32").Contains(p.Addr()) && !net("2001:db8:ffff::/48").Contains(p.Addr()):
				case i == 0 && p.Bits() == 26:
					at := slices.IndexFunc(racks4[:], func(in netip.Prefix) bool { return in.Contains(p.Addr()) })
					if at < 0 {
						t.Errorf("seed %d: %s has %v", seed, n.Name, p)
						continue
					}
					seen[racks4[at]] = true
				default:
					t.Errorf("seed %d: %s has %v", seed, n.Name, p)
				}
			}
		}
	}
	if len(seen) != 2 {
		t.Errorf("racks are all of %v", seen)
	}
}

func TestSpec_sameSeedSameFabric(t *testing.T) {
	text := func(seed uint64) string {
		g, err := graph.New(Spec(parse(t, "leaf-spine:leaves=4,spines=4,hosts=2"), seed))
		if err != nil {
			t.Fatal(err)
		}
		return string(g.Text())
	}
	if text(3) != text(3) {
		t.Error("the same seed gives two fabrics")
	}
	if text(3) == text(4) {
		t.Error("two seeds give the same fabric")
	}
}
