package topology

import (
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

// match finds the route with the longest prefix, as a FIB does.
func (f tables) match(at NodeID, dst netip.Addr) (best Route, ok bool) {
	for _, r := range f.routes[at] {
		if r.Prefix.Contains(dst) && (!ok || r.Prefix.Bits() > best.Prefix.Bits()) {
			best, ok = r, true
		}
	}
	return best, ok
}

// owns reports whether a packet to dst ends at a node.
func (f tables) owns(at NodeID, dst netip.Addr) bool {
	n := f.top.Node(at)
	return n.Addr == dst || n.Layer == LayerHost && f.top.EmbeddedAddr(at) == dst
}

// walk follows the routes from a node until one owns dst, and returns the nodes
// after the first. It fails where a table offers a choice, for which a
// bouncing switch must leave no room.
func (f tables) walk(t *testing.T, at NodeID, dst netip.Addr) (hops []NodeID) {
	t.Helper()
	for !f.owns(at, dst) {
		r, ok := f.match(at, dst)
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

// A packet to the bouncing switch and from there to the host takes Path,
// whether to the kernel's address or to the embedded stack's.
func TestRoutes_reproducePath(t *testing.T) {
	for _, k := range []int{2, 4, 6, 8} {
		top := mustFatTree(t, k)
		f := tablesOf(top)
		everyPath(t, top, func(src, dst, via NodeID, p Path) {
			if k == 8 && (src+dst)%17 != 0 {
				return
			}
			for _, a := range []netip.Addr{top.Node(dst).Addr, top.EmbeddedAddr(dst)} {
				hops := []NodeID{src}
				if via != p.Hops[1] { // not within a rack
					hops = append(hops, f.walk(t, src, top.Node(via).Addr)...)
				}
				if hops = append(hops, f.walk(t, hops[len(hops)-1], a)...); !slices.Equal(hops, p.Hops) {
					t.Fatalf("k=%d: %s, want %s", k, names(top, hops), names(top, p.Hops))
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
	r, ok := f.match(at, dst)
	if !ok || len(r.Ports) == 0 {
		end(at, false)
		return
	}
	for _, p := range r.Ports {
		f.explore(t, f.ports[at][p].Peer, dst, hops+1, end)
	}
}

// Un-encapsulated packets arrive whichever next hop ECMP takes.
func TestRoutes_ecmpArrivesOverEveryChoice(t *testing.T) {
	for _, k := range []int{2, 4, 6} {
		top := mustFatTree(t, k)
		f := tablesOf(top)
		for src := range NodeID(top.NumHosts()) {
			for dst := range NodeID(top.NumHosts()) {
				for _, a := range []netip.Addr{top.Node(dst).Addr, top.EmbeddedAddr(dst)} {
					ends, want := 0, max(1, len(top.Paths(src, dst).Live))
					f.explore(t, src, a, 0, func(at NodeID, arrived bool) {
						ends++
						if at != dst || !arrived {
							t.Fatalf("k=%d: %d to %v ends at %s", k, src, a, top.Node(at).Name)
						}
					})
					if src != dst && ends != want {
						t.Fatalf("k=%d: %d to %v has %d ways, want %d", k, src, a, ends, want)
					}
				}
			}
		}
	}
}

func TestRoutes_packetsToNobodyEnd(t *testing.T) {
	for _, k := range []int{2, 4, 6} {
		top := mustFatTree(t, k)
		f := tablesOf(top)
		for _, s := range []string{
			"10.0.0.0", "10.0.0.99", "10.0.0.255", "10.1.0.200", "10.0.99.2", "10.1.99.1", "10.99.0.2",
			"10.255.255.255", "192.0.2.1", "0.0.0.0", "255.255.255.255",
			octets(10, k, 0, 1).String(), octets(10, k, 1, 99).String(), octets(10, k, k, k).String(),
			octets(10, 0, k, 1).String(), octets(10, 1, 0, 2+k/2).String(), octets(10, 1, 0, 130+k/2).String(),
		} {
			a := netip.MustParseAddr(s)
			if _, ok := top.ByAddr(a); ok {
				t.Fatalf("k=%d: %s is somebody", k, s)
			}
			for n := range top.Nodes() {
				if n.Layer == LayerHost && n.ID%3 != 0 {
					continue
				}
				f.explore(t, n.ID, a, 0, func(at NodeID, arrived bool) {
					if arrived || top.Node(at).Layer == LayerHost {
						t.Fatalf("k=%d: %s from %s arrives at %s", k, s, n.Name, top.Node(at).Name)
					}
				})
			}
		}
	}
}

// With links down, what can bounce still reproduces Path, and no table names a
// port that is down.
func TestRoutes_avoidWhatIsDown(t *testing.T) {
	whole := mustFatTree(t, 4)
	top := whole.Without(17, 35).WithoutNode(mustLookup(t, whole, "3.3"))
	f := tablesOf(top)
	everyPath(t, top, func(src, dst, via NodeID, p Path) {
		if via == p.Hops[1] {
			return
		}
		hops := append([]NodeID{src}, f.walk(t, src, top.Node(via).Addr)...)
		if hops = append(hops, f.walk(t, via, top.Node(dst).Addr)...); !slices.Equal(hops, p.Hops) {
			t.Fatalf("%s, want %s", names(top, hops), names(top, p.Hops))
		}
	})
	dropped := 0
	for n := range top.Nodes() {
		for _, r := range f.routes[n.ID] {
			for _, p := range r.Ports {
				if !top.Live(f.ports[n.ID][p].Link) {
					t.Errorf("%s routes %v to port %d, which is down", n.Name, r.Prefix, p)
				}
			}
		}
		dropped += len(whole.Routes(n.ID)) - len(f.routes[n.ID])
	}
	if dropped == 0 {
		t.Error("no route is gone, though links are")
	}
}

// Longest prefixes need not come first, but no prefix may come twice.
func TestRoutes_prefixesAreUniqueAndMasked(t *testing.T) {
	for _, k := range []int{2, 4, 16, 64} {
		top := mustFatTree(t, k)
		for _, id := range []NodeID{0, NodeID(top.NumHosts()), NodeID(top.NumHosts() + k*k/2), NodeID(top.NumNodes() - 1)} {
			seen := map[netip.Prefix]bool{}
			for _, r := range top.Routes(id) {
				if seen[r.Prefix] || r.Prefix != r.Prefix.Masked() {
					t.Errorf("k=%d: %s: route %v twice or not masked", k, top.Node(id).Name, r.Prefix)
				}
				seen[r.Prefix] = true
			}
		}
	}
}
