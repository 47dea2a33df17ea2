package fabric

import (
	"net/netip"
	"strings"
	"testing"

	"weft/topology"
)

func leafOf(t *testing.T, spec, edge string) LeafConfig {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	n, err := top.Lookup(edge)
	if err != nil {
		t.Fatal(err)
	}
	return LeafConfig{Topology: top, Self: n.ID}
}

// A leaf knows the paths that its hosts have, by the same numbers, without those that are
// down; and its own rack as its own.
func TestLeafConfig_tables(t *testing.T) {
	for _, c := range []struct{ spec, edge string }{{"fat-tree:k=4", "e1.1"}, {"fat-tree:k=8", "e0.2"}, {"leaf-spine:leaves=4,spines=3,hosts=2", "e0.2"}} {
		l := leafOf(t, c.spec, c.edge)
		up := l.Topology.Ports(l.Self)
		for _, down := range [][]topology.LinkID{nil, {up[len(up)-1].Link}} {
			l.Topology = l.Topology.Whole().Without(down...)
			tables, err := l.tables()
			if err != nil {
				t.Fatal(err)
			}
			host := l.Topology.FirstHost(l.Self)
			for number, edge := range tables.edges {
				prefix := l.Topology.RackOf(edge)
				want := uint32(number)
				if edge == l.Self {
					want = ownRack
				}
				if got, ok := tables.prefixes[destination{uint32(prefix.Bits()), prefix.Addr().As4()}]; !ok || got != want {
					t.Errorf("%s: rack %v is %d, want %d", c.spec, prefix, got, want)
				}
				if edge == l.Self {
					continue
				}
				r, set := tables.racks[uint32(number)], l.Topology.Paths(host, edge)
				if int(r.N) != len(set.Live) || len(down) > 0 && int(r.N) == set.Count() {
					t.Errorf("%s: %d paths to rack %d, want %d", c.spec, r.N, number, len(set.Live))
				}
				for _, n := range set.Live {
					if netip.AddrFrom4(r.Bounce[n]) != set.Addr(n) {
						t.Errorf("%s: path %d to rack %d by %v, want %v", c.spec, n, number, r.Bounce[n], set.Addr(n))
					}
					if up := int(r.Uplink[r.Tag[n]]); up != set.Uplink(n) {
						t.Errorf("%s: path %d to rack %d begins with uplink %d, want %d", c.spec, n, number, up, set.Uplink(n))
					}
				}
			}
		}
	}
}

func TestBalanceConfig_leaf(t *testing.T) {
	good := leafOf(t, "fat-tree:k=4", "e0.1")
	for _, p := range good.Topology.Ports(good.Self) {
		good.Links = append(good.Links, p.Link)
	}
	config := func(l LeafConfig) BalanceConfig {
		c := BalanceConfig{Rule: "conga", Leaf: l}
		for _, name := range []string{"p0", "p1", "p2", "p3"} {
			c.Ports = append(c.Ports, MeterPort{Name: name})
		}
		return c
	}
	if _, err := config(good).check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*LeafConfig){
		"Topology is missing": func(l *LeafConfig) { l.Topology = nil },
		"no edge switch":      func(l *LeafConfig) { l.Self = 0 },
		"a link for each":     func(l *LeafConfig) { l.Links = l.Links[1:] },
	} {
		bad := good
		change(&bad)
		if _, err := config(bad).check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	for i, p := range good.Topology.Ports(good.Self) {
		var host [2][4]byte
		if !p.Up {
			host = [2][4]byte{good.Topology.Node(p.Peer).Addr.As4(), good.Topology.EmbeddedAddr(p.Peer).As4()}
		}
		if got := good.hostAt(good.Links[i]); got != host {
			t.Errorf("at port %d is the host %v, want %v", i, got, host)
		}
		if n, up := good.upPort(good.Links[i]); up != p.Up || up && n != i-2 {
			t.Errorf("port %d is uplink %d, %v", i, n, up)
		}
	}
	for _, c := range []struct {
		rule       string
		edge, core bool
		room       int
	}{{"conga", true, false, 20}, {"luopan:d=3", true, false, 20}, {"drill", true, true, 0}, {"ecmp", false, false, 0}, {"nothing", false, false, 0}} {
		if a, b, room := BalancesAt(c.rule, topology.LayerEdge), BalancesAt(c.rule, topology.LayerCore), BalanceRoom(c.rule); a != c.edge || b != c.core || room != c.room {
			t.Errorf("%s: %v at edges, %v at cores, room %d", c.rule, a, b, room)
		}
	}
}
