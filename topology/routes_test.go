package topology

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// tables are the routing tables of all nodes, made once.
type tables struct {
	top    *Topology
	routes [][]Route
	ports  [][]Port
}

func tablesOf(top *Topology) tables {
	f := tables{top: top}
	for n := range top.Nodes() {
		f.routes = append(f.routes, top.Routes(n.ID))
		f.ports = append(f.ports, top.Ports(n.ID))
	}
	return f
}

// match finds the route with the longest prefix, as a FIB does: first in the
// table of the virtual spine, if the packet was decapsulated at one.
func (f tables) match(at NodeID, dst netip.Addr, virtual int) (best Route, ok bool) {
	for _, r := range f.routes[at] {
		if r.Virtual == virtual && r.Prefix.Contains(dst) && (!ok || r.Prefix.Bits() > best.Prefix.Bits()) {
			best, ok = r, true
		}
	}
	if !ok && virtual > 0 {
		return f.match(at, dst, 0)
	}
	return best, ok
}

// owns reports whether a packet to dst ends at a node.
func (f tables) owns(at NodeID, dst netip.Addr) bool {
	n := f.top.Node(at)
	return n.Addr == dst || n.Layer == LayerHost && f.top.EmbeddedAddr(at) == dst ||
		slices.Contains(f.top.BouncingAddrs(at), dst)
}

// walk follows the routes from a node until one owns dst, and returns the nodes
// after the first. virtual is of the first node alone. It fails where a table
// offers a choice, for which a bouncing switch must leave no room.
func (f tables) walk(t *testing.T, at NodeID, dst netip.Addr, virtual int) (hops []NodeID) {
	t.Helper()
	for !f.owns(at, dst) {
		r, ok := f.match(at, dst, virtual)
		virtual = 0
		if !ok || len(r.Ports) != 1 {
			t.Fatalf("%v: %s has %v for %v", f.top, f.top.Node(at).Name, r, dst)
		}
		at = f.ports[at][r.Ports[0]].Peer
		if hops = append(hops, at); len(hops) > 10 {
			t.Fatalf("%v: %v in circles: %s", f.top, dst, names(f.top, hops))
		}
	}
	return hops
}

// bounced follows a packet to its bouncing switch and from there to dst.
func (f tables) bounced(t *testing.T, src NodeID, set PathSet, n int, dst netip.Addr) (hops []NodeID) {
	t.Helper()
	hops = []NodeID{src}
	if set.Direct() {
		return append(hops, f.walk(t, src, dst, 0)...)
	}
	hops = append(hops, f.walk(t, src, set.Addr(n), 0)...)
	via, virtual := hops[len(hops)-1], 0
	if addrs := f.top.BouncingAddrs(via); len(addrs) > 1 {
		virtual = 1 + slices.Index(addrs, set.Addr(n))
	}
	return append(hops, f.walk(t, via, dst, virtual)...)
}

// A packet to the bouncing switch and from there to the host takes Path,
// whether to the kernel's address or to the embedded stack's.
func TestRoutes_reproducePath(t *testing.T) {
	for _, top := range append(fabrics(t), mustFatTree(t, 8)) {
		f := tablesOf(top)
		everyPath(t, top, func(src, dst NodeID, set PathSet, n int, p Path) {
			if top.NumHosts() > 100 && (src+dst)%17 != 0 {
				return
			}
			for _, a := range []netip.Addr{top.Node(dst).Addr, top.EmbeddedAddr(dst)} {
				if hops := f.bounced(t, src, set, n, a); !slices.Equal(hops, p.Hops) {
					t.Fatalf("%v: %s, want %s", top, names(top, hops), names(top, p.Hops))
				}
			}
		})
	}
}

// explore follows every choice of ports and calls f where a packet ends: at an
// owner, refused, or without a route.
func (f tables) explore(t *testing.T, at NodeID, dst netip.Addr, hops int, end func(at NodeID, arrived bool)) {
	t.Helper()
	if hops > 6 {
		t.Fatalf("%v: %v is still on the way after %d hops at %s", f.top, dst, hops, f.top.Node(at).Name)
	}
	if f.owns(at, dst) {
		end(at, true)
		return
	}
	r, ok := f.match(at, dst, 0)
	if !ok || len(r.Ports) == 0 {
		end(at, false)
		return
	}
	for _, p := range r.Ports {
		f.explore(t, f.ports[at][p].Peer, dst, hops+1, end)
	}
}

// Who is next to a destination refuses; who is one of many ways to it is silent, also
// of a port whose route the kernel has taken out itself.
func TestRoutes_refusedAtTheEdgeOnly(t *testing.T) {
	const seed = 6
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, whole := range fabrics(t) {
		between := func() LinkID { return LinkID(whole.numHosts() + rng.IntN(whole.NumLinks()-whole.numHosts())) }
		for _, top := range []*Topology{whole, whole.Without(between(), between())} {
			f := tablesOf(top)
			for n := range top.Nodes() {
				above := n.Layer == LayerAgg || n.Layer == LayerCore
				for _, r := range f.routes[n.ID] {
					if r.Drop != (above && len(r.Ports) == 0) {
						t.Fatalf("seed %d, %v without %v: %s: %+v", seed, top, top.Down(), n.Name, r)
					}
				}
				if n.Layer != LayerCore {
					continue
				}
				for h := range top.Hosts() {
					f.routes[n.ID] = slices.DeleteFunc(slices.Clone(f.routes[n.ID]), func(r Route) bool { return len(r.Ports) > 0 })
					if r, ok := f.match(n.ID, h.Addr, 0); !ok || !r.Drop {
						t.Fatalf("%v: %s without ports does not drop what is for %s: %+v", top, n.Name, h.Name, r)
					}
				}
			}
		}
	}
}

func TestRoutes_packetsToNobodyEnd(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, whole := range fabrics(t) {
		nobody := nobodysAddrs(whole)
		if len(nobody) < 20 {
			t.Fatalf("%v: %d addresses are nobody's: the test tests nothing", whole, len(nobody))
		}
		between := func() LinkID { return LinkID(whole.numHosts() + rng.IntN(whole.NumLinks()-whole.numHosts())) }
		for _, top := range []*Topology{whole, whole.Without(between(), between())} {
			f := tablesOf(top)
			for _, a := range nobody {
				for n := range top.Nodes() {
					if n.Layer == LayerHost && n.ID%3 != 0 {
						continue
					}
					f.explore(t, n.ID, a, 0, func(at NodeID, arrived bool) {
						if arrived || top.Node(at).Layer == LayerHost {
							t.Fatalf("%v without %v: %v from %s arrives at %s", top, top.Down(), a, n.Name, top.Node(at).Name)
						}
					})
				}
			}
		}
	}
}

// nobodysAddrs lists addresses around those in use that are nobody's.
func nobodysAddrs(top *Topology) (list []netip.Addr) {
	all := []string{"192.0.2.1", "0.0.0.0", "255.255.255.255", "10.255.255.255", "10.99.0.2", "10.0.99.2", "10.1.99.1"}
	for n := range top.Nodes() {
		for _, last := range []byte{0, 1, 99, 200, 255} {
			a := n.Addr.As4()
			a[3] = last
			all = append(all, netip.AddrFrom4(a).String())
			a[2]++
			all = append(all, netip.AddrFrom4(a).String())
			a[1]++
			all = append(all, netip.AddrFrom4(a).String())
		}
	}
	slices.Sort(all)
	for _, s := range slices.Compact(all) {
		a := netip.MustParseAddr(s)
		if _, ok := top.ByAddr(a); !ok {
			list = append(list, a)
		}
	}
	return list
}

// With links down, what can bounce still reproduces Path, and no table names a
// port that is down.
func TestRoutes_avoidWhatIsDown(t *testing.T) {
	const seed = 9
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, whole := range fabrics(t) {
		top := whole.WithoutNode(NodeID(whole.NumNodes() - 1))
		for range 3 {
			top = top.Without(LinkID(whole.numHosts() + rng.IntN(whole.NumLinks()-whole.numHosts())))
		}
		f := tablesOf(top)
		everyPath(t, top, func(src, dst NodeID, set PathSet, n int, p Path) {
			if hops := f.bounced(t, src, set, n, top.Node(dst).Addr); !slices.Equal(hops, p.Hops) {
				t.Fatalf("seed %d: %v without %v: %s, want %s", seed, top, top.Down(), names(top, hops), names(top, p.Hops))
			}
		})
		for n := range top.Nodes() {
			for _, r := range f.routes[n.ID] {
				for _, p := range r.Ports {
					if !top.Live(f.ports[n.ID][p].Link) {
						t.Errorf("%v: %s routes %v to port %d, which is down", top, n.Name, r.Prefix, p)
					}
				}
			}
		}
	}
}

// Longest prefixes need not come first, but no prefix may come twice.
func TestRoutes_prefixesAreUniqueAndMasked(t *testing.T) {
	tops := append(fabrics(t), manyFabrics(t)...)
	for _, top := range append(tops, mustFatTree(t, 16), mustFatTree(t, 64)) {
		cut := top.Without(LinkID(top.numHosts()), LinkID(top.NumLinks()-1))
		for _, top := range []*Topology{top, cut} {
			for _, id := range []NodeID{0, NodeID(top.NumHosts()), NodeID(top.NumHosts() + top.numEdges()), NodeID(top.NumNodes() - 1)} {
				type key struct {
					netip.Prefix
					virtual int
				}
				seen := map[key]bool{}
				for _, r := range top.Routes(id) {
					k := key{r.Prefix, r.Virtual}
					if seen[k] || r.Prefix != r.Prefix.Masked() {
						t.Errorf("%v: %s: route %v twice or not masked", top, top.Node(id).Name, r)
					}
					seen[k] = true
				}
			}
		}
	}
}
