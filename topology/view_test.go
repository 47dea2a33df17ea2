package topology

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weft/topology/graph"
	"weft/topology/graph/graphtest"
)

// randomGraph returns a random Clos, the seeds of which make some without hosts.
func randomGraph(t *testing.T, seed uint64) *graph.Graph {
	t.Helper()
	g, err := graph.New(graphtest.Random(seed))
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return g
}

// What a host sees of a fabric is what the Graph says of its paths: to each host and each
// address of a rack the bouncing addresses by number, which of them live when ways are down,
// and their weights.
func TestFromGraph_hasThePathsOfTheGraph(t *testing.T) {
	views, compared := 0, 0
	for seed := range uint64(200) {
		g := randomGraph(t, seed)
		rng := rand.New(rand.NewPCG(seed, 9))
		for h := range graph.NodeID(g.NumHosts()) {
			self := g.Node(h).Addresses[0]
			v, err := FromGraph(g, self)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			views++
			var down []LinkID
			for l := range v.NumLinks() {
				if rng.IntN(6) == 0 {
					down = append(down, LinkID(l))
				}
			}
			now := v.Without(down...)
			for to := range graph.NodeID(g.NumHosts()) {
				dst := g.Node(to).Addresses[0]
				want := g.Paths(h, to)
				host, edge, ok := v.HostAt(dst)
				if !ok || host != dst {
					t.Fatalf("seed %d: %v is %v, %v", seed, dst, host, ok)
				}
				set := v.PathsTo(0, dst)
				want.Direct = want.Direct || len(want.List) == 0 // nothing to bounce at
				if set.Direct() != want.Direct || set.Count() != len(want.List) || len(set.Live) != len(want.List) {
					t.Fatalf("seed %d, %v to %v: direct %t, %d of %d paths live; want %t, %d", seed, self, dst, set.Direct(), len(set.Live), set.Count(), want.Direct, len(want.List))
				}
				_, rates := want.Live(nil)
				if w := weigh(rates); !slices.Equal(set.Weights, w) {
					t.Fatalf("seed %d, %v to %v: weights %v, want %v", seed, self, dst, set.Weights, w)
				}
				var live []int
				for n, p := range want.List {
					up, far := set.Halves(n)
					switch {
					case set.Addr(n) != g.Node(p.Bounce).Addresses[0] || v.Node(set.Bounce(n)).Name != g.Node(p.Bounce).Name || set.Name(n) != g.Node(p.Bounce).Name:
						t.Fatalf("seed %d, %v to %v: path %d bounces at %v, want %s", seed, self, dst, n, set.Addr(n), g.Node(p.Bounce).Name)
					case !isVia(set, n):
						t.Fatalf("seed %d, %v to %v: path %d is not found by its bouncing address", seed, self, dst, n)
					case set.Uplink(n) != append(p.Digits, 0)[0]:
						t.Fatalf("seed %d, %v to %v: path %d goes up by %d, want %v", seed, self, dst, n, set.Uplink(n), p.Digits)
					case v.LinkName(up[0]) != g.Node(p.Edge()).Name+"-"+g.Node(p.Bounce).Name || v.Link(far[0]).B != set.Bounce(n) || v.Link(far[0]).A != edge:
						t.Fatalf("seed %d: path %d is %s and %s", seed, n, v.LinkName(up[0]), v.LinkName(far[0]))
					case !v.OnPaths(up[0], 0, edge) || !v.OnPaths(far[0], 0, edge):
						t.Fatalf("seed %d: the links of path %d are on no path", seed, n)
					}
					if now.Live(up[0]) && now.Live(far[0]) {
						live = append(live, n)
					}
					compared++
				}
				if got := now.PathsTo(0, dst).Live; !slices.Equal(got, live) {
					t.Fatalf("seed %d, %v to %v: %v live, want %v", seed, self, dst, got, live)
				}
				if all := now.PathsOrAll(0, edge); len(live) == 0 && len(all.Live) != len(want.List) || !slices.Equal(all.Weights, all.OrAll().Weights) {
					t.Fatalf("seed %d, %v to %v: %d paths when none lives", seed, self, dst, len(all.Live))
				}
				used := map[LinkID]bool{}
				for n := range want.List {
					up, far := set.Halves(n)
					used[up[0]], used[far[0]] = true, true
				}
				for l := range LinkID(v.NumLinks()) {
					if v.OnPaths(l, 0, edge) != used[l] {
						t.Fatalf("seed %d, %v to %v: %s is on the paths: %t", seed, self, dst, v.LinkName(l), !used[l])
					}
				}
			}
		}
	}
	if views < 500 || compared < 3000 {
		t.Errorf("only %d views and %d paths", views, compared)
	}
}

// isVia reports whether a path, or one before it by the same switch, is found by its address.
func isVia(set PathSet, n int) bool {
	at, ok := set.Via(set.Addr(n))
	return ok && at <= n && set.Addr(at) == set.Addr(n)
}

// Every address is in the rack that the Graph leads packets to.
func TestFromGraph_racks(t *testing.T) {
	for seed := range uint64(200) {
		g := randomGraph(t, seed)
		if g.NumHosts() == 0 {
			continue
		}
		v, err := FromGraph(g, g.Node(0).Addresses[0])
		if err != nil {
			t.Fatal(err)
		}
		for third := range 6 {
			for fourth := range 256 {
				a := netip.AddrFrom4([4]byte{192, 168, byte(third), byte(fourth)})
				at, known := g.Behind(a)
				edge, ok := v.RackAt(a)
				if ok != known {
					t.Fatalf("seed %d: %v is in a rack: %t, want %t", seed, a, ok, known)
				}
				if !ok {
					continue
				}
				var names []string
				for _, e := range g.Edges(at) {
					names = append(names, g.Node(e).Name)
				}
				slices.Sort(names)
				if got := slices.Sorted(strings.SplitSeq(v.Node(edge).Name, "+")); !slices.Equal(got, names) {
					t.Fatalf("seed %d: %v is at %v, want %v", seed, a, got, names)
				}
				if !slices.ContainsFunc(v.RackPrefixes(edge), func(p netip.Prefix) bool { return p.Contains(a) }) {
					t.Fatalf("seed %d: %v is not in %v", seed, a, v.RackPrefixes(edge))
				}
			}
		}
	}
}

// An embedded stack's address is behind its host: it sees what the host sees.
func TestFromGraph_embedded(t *testing.T) {
	const text = `nodes:
  h1: {addresses: [192.168.1.2, "2001:db8:1::2"], prefixes: [192.168.1.9/32, "2001:db8:1::9/128"]}
  h2: {addresses: [192.168.2.2], prefixes: [192.168.2.9/32, 10.9.0.0/24]}
  leaf1: {tier: 1, prefixes: [192.168.1.0/24, "2001:db8:1::/64"]}
  leaf2: {tier: 1, prefixes: [192.168.2.0/24, "2001:db8:2::/64"]}
  spine1: {tier: 2, addresses: [172.16.0.1, "2001:db8:ffff::1"]}
links:
  - {ends: [h1, leaf1]}
  - {ends: [h2, leaf2]}
  - {ends: [leaf1, spine1]}
  - {ends: [leaf2, spine1]}
`
	g, err := graph.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var all []*Topology
	for _, self := range []string{"192.168.1.2", "192.168.1.9", "2001:db8:1::2", "2001:db8:1::9"} {
		a := netip.MustParseAddr(self)
		v, err := FromGraph(g, a)
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := v.ByAddr(a); !ok || id != 0 || v.Node(0).Addr != a || v.Node(0).Name != "h1" {
			t.Errorf("%v is %+v", a, v.Node(id))
		}
		if host, edge, ok := v.HostAt(a); !ok || edge != 1 || host != a {
			t.Errorf("%v is at %v, rack %d", a, host, edge)
		}
		// What lies within its rack's prefix needs none of its own.
		if n := len(v.RackPrefixes(1)); n != 2 {
			t.Errorf("the rack has prefixes %v", v.RackPrefixes(1))
		}
		if got := v.RackPrefixes(2); len(got) != 3 { // 10.9.0.0/24 is not
			t.Errorf("the other rack has prefixes %v", got)
		}
		if src, ok := v.SIDSource(); a.Is6() && (!ok || src != a) {
			t.Errorf("%v sends by SIDs from %v", a, src)
		}
		all = append(all, v)
	}
	for i, v := range all {
		if !v.Alike(all[0]) {
			t.Errorf("view %d has other nodes or links", i)
		}
	}
	less, err := graph.Parse([]byte(text + "  - {ends: [leaf1, spine1]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := FromGraph(less, netip.MustParseAddr("192.168.1.10")); err == nil {
		t.Error("an address behind nobody is taken")
	}
	if tree, _ := FatTree(4); tree.Alike(all[0]) || all[0].Alike(tree) {
		t.Error("a computed fabric is like one that is data")
	}
}

// A rack to which no bouncing switch is known, as when BGP has not told all yet, gets packets as
// the switches' own routes have them.
func TestFromGraph_racksWithoutPaths(t *testing.T) {
	g, err := graph.Parse([]byte(`nodes:
  h1: {addresses: [192.168.1.2]}
  leaf1: {tier: 1, prefixes: [192.168.1.0/24]}
  leaf2: {tier: 1, prefixes: [192.168.2.0/24]}
  leaf3: {tier: 1, prefixes: [192.168.3.0/24]}
  spine1: {tier: 2, addresses: [172.16.0.1]}
links:
  - {ends: [h1, leaf1]}
  - {ends: [leaf1, spine1]}
  - {ends: [leaf2, spine1]}
`))
	if err != nil {
		t.Fatal(err)
	}
	v, err := FromGraph(g, netip.MustParseAddr("192.168.1.2"))
	if err != nil {
		t.Fatal(err)
	}
	for addr, direct := range map[string]bool{"192.168.2.2": false, "192.168.3.2": true} {
		if set := v.PathsTo(0, netip.MustParseAddr(addr)); set.Direct() != direct {
			t.Errorf("%s: direct is %t, of %d paths", addr, set.Direct(), set.Count())
		}
	}
}
