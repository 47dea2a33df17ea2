package topology

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// Thesis §3.1.5. It counts the uplinks of 10.0.2.1 otherwise than we do; the
// nodes are the same.
func TestPath_thesisExample(t *testing.T) {
	top := mustFatTree(t, 4)
	src, dst := mustLookup(t, top, "10.0.1.2"), mustLookup(t, top, "10.2.0.3")
	p, err := top.Path(src, dst, mustLookup(t, top, "3.0"))
	if err != nil {
		t.Fatal(err)
	}
	want := []NodeID{src}
	for _, a := range []string{"10.0.1.1", "10.0.2.1", "10.4.1.1", "10.2.2.1", "10.2.0.1"} {
		want = append(want, mustLookup(t, top, a))
	}
	if want = append(want, dst); !slices.Equal(p.Hops, want) {
		t.Errorf("%s, want %s", names(top, p.Hops), names(top, want))
	}
}

// DRB §3.1.2's example: the first four packets from server 0 to server 15.
func TestPath_drbExample(t *testing.T) {
	top := mustFatTree(t, 4)
	for via, want := range map[string]string{
		"3.0": "h0.0.2 e0.0 a0.2 c1.1 a3.2 e3.1 h3.1.3",
		"3.2": "h0.0.2 e0.0 a0.3 c2.1 a3.3 e3.1 h3.1.3",
		"3.1": "h0.0.2 e0.0 a0.2 c1.2 a3.2 e3.1 h3.1.3",
		"3.3": "h0.0.2 e0.0 a0.3 c2.2 a3.3 e3.1 h3.1.3",
	} {
		p, err := top.Path(0, 15, mustLookup(t, top, via))
		if err != nil || names(top, p.Hops) != want {
			t.Errorf("via %s: %s, %v; want %s", via, names(top, p.Hops), err, want)
		}
	}
}

func TestPath_linksJoinHops(t *testing.T) {
	for _, top := range fabrics(t) {
		everyPath(t, top, func(src, dst NodeID, set PathSet, n int, p Path) {
			if p.Hops[0] != src || p.Hops[len(p.Hops)-1] != dst || len(p.Links) != len(p.Hops)-1 {
				t.Fatalf("%v: %+v", top, p)
			}
			if !set.Direct() && p.Hops[len(p.Hops)/2] != set.Bounce(n) {
				t.Fatalf("%v: %s: the middle is not %s", top, names(top, p.Hops), set.Name(n))
			}
			for i, id := range p.Links {
				l := top.Link(id)
				if a, b := p.Hops[i], p.Hops[i+1]; !(l.A == a && l.B == b || l.A == b && l.B == a) {
					t.Fatalf("%v: %s: link %d is %+v", top, names(top, p.Hops), i, l)
				}
			}
		})
	}
}

// everyPath calls f for every pair of hosts and every live path of theirs;
// within a rack for the one over the edge switch, with n = 0.
func everyPath(t *testing.T, top *Topology, f func(src, dst NodeID, set PathSet, n int, p Path)) {
	t.Helper()
	for src := range NodeID(top.NumHosts()) {
		for dst := range NodeID(top.NumHosts()) {
			if src == dst {
				continue
			}
			set := top.Paths(src, dst)
			if set.Direct() {
				p, err := top.Path(src, dst, top.Ports(src)[0].Peer)
				if err != nil {
					t.Fatal(err)
				}
				f(src, dst, set, 0, p)
			}
			for _, n := range set.Live {
				f(src, dst, set, n, set.Path(n))
			}
		}
	}
}

// Where a bouncing switch tells the path, asking for it by the switch or by the
// number is the same.
func TestPath_bySwitchIsByNumber(t *testing.T) {
	for _, top := range fabrics(t) {
		everyPath(t, top, func(src, dst NodeID, set PathSet, n int, p Path) {
			if set.Direct() {
				return
			}
			q, err := top.Path(src, dst, set.Bounce(n))
			if len(set.Bases) == 2 && top.virtual() > 1 {
				if err == nil || !strings.Contains(err.Error(), "virtual spines") {
					t.Fatalf("%v: Path via %s = %v, %v; want an error", top, set.Name(n), names(top, q.Hops), err)
				}
			} else if err != nil || !slices.Equal(q.Hops, p.Hops) || !slices.Equal(q.Links, p.Links) {
				t.Fatalf("%v: via %s %s, %v; want %s", top, set.Name(n), names(top, q.Hops), err, names(top, p.Hops))
			}
		})
	}
}

// On the bare graph: from one host up to the bouncing switch and from there to
// the other there is one shortest way each, and it is Path's. For VL2 this is
// DRB's Theorem 3: in the extended network, in which virtual spines are nodes.
func TestPath_isTheOneShortestWay(t *testing.T) {
	for _, top := range fabrics(t) {
		g := extended(top)
		search := map[NodeID]ways{}
		everyPath(t, top, func(src, dst NodeID, set PathSet, n int, p Path) {
			via := p.Hops[1]
			if !set.Direct() {
				via = g.bounce(t, set, n)
			}
			w, ok := search[via]
			if !ok {
				w = g.breadthFirst(via)
				search[via] = w
			}
			up, down := w.to(src), w.to(dst)
			if w.count[src] != 1 || w.count[dst] != 1 {
				t.Fatalf("%v: path %d: %d ways from the bounce to %s, %d to %s", top, n, w.count[src],
					top.Node(src).Name, w.count[dst], top.Node(dst).Name)
			}
			slices.Reverse(up)
			if want := g.physical(append(up, down[1:]...)); !slices.Equal(p.Hops, want) {
				t.Fatalf("%v: %s, want %s", top, names(top, p.Hops), names(top, want))
			}
		})
	}
}

func TestPath_errors(t *testing.T) {
	top := mustFatTree(t, 4)
	id := func(s string) NodeID { return mustLookup(t, top, s) }
	for _, c := range []struct {
		src, dst, via NodeID
		says          string
	}{
		{-1, 0, id("3.0"), "hosts"},
		{0, NodeID(top.NumNodes()), id("3.0"), "hosts"},
		{id("e0.0"), 1, id("3.0"), "hosts"},
		{0, 15, -1, "not in fat-tree:k=4"},
		{0, 15, NodeID(top.NumNodes()), "not in fat-tree:k=4"},
		{0, 15, id("a0.2"), "a0.2"},
		{0, 15, id("a3.2"), "a3.2"},
		{0, 15, id("e0.0"), "e0.0"},
		{0, 15, id("h1.0.2"), "h1.0.2"},
		{id("h0.0.2"), id("h0.1.2"), id("e0.0"), "e0.0"},
	} {
		if p, err := top.Path(c.src, c.dst, c.via); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Path(%d, %d, %d) = %v, %v; want an error saying %q", c.src, c.dst, c.via, p, err, c.says)
		}
	}
}

// Within a rack nobody bounces, within a pod its aggregation switches, else the
// cores, each at an address of its own. For VL2 it is every virtual spine once.
func TestPaths_bouncingSwitches(t *testing.T) {
	for _, top := range fabrics(t) {
		for src := range top.Hosts() {
			for dst := range top.Hosts() {
				set := top.Paths(src.ID, dst.ID)
				a, b := top.position(src.ID), top.position(dst.ID)
				var want []netip.Addr
				for n := range top.Nodes() {
					p := top.position(n.ID)
					switch {
					case a.pod == b.pod && a.sw == b.sw:
					case a.pod == b.pod && n.Layer == LayerAgg && p.pod == a.pod, a.pod != b.pod && n.Layer == LayerCore:
						want = append(want, top.BouncingAddrs(n.ID)...)
					}
				}
				var got []netip.Addr
				product := 1
				for _, base := range set.Bases {
					product *= base
				}
				for i, n := range set.Live {
					got = append(got, set.Addr(n))
					if id, ok := top.ByAddr(set.Addr(n)); n != i || !ok || id != set.Bounce(n) {
						t.Fatalf("%v: path %d of %v: %v is %d, bounces at %d", top, n, set.Live, set.Addr(n), id, set.Bounce(n))
					}
					if node, err := top.Lookup(set.Name(n)); err != nil || node.ID != set.Bounce(n) {
						t.Fatalf("%v: path %d bounces at %d, called %s: %v", top, n, set.Bounce(n), set.Name(n), err)
					}
				}
				slices.SortFunc(got, netip.Addr.Compare)
				slices.SortFunc(want, netip.Addr.Compare)
				if !slices.Equal(got, want) || set.Direct() != (want == nil) || want != nil && product != len(got) {
					t.Fatalf("%v: %s to %s: %v in bases %v, want %v", top, src.Name, dst.Name, got, set.Bases, want)
				}
			}
		}
	}
}

// The most significant digit of a path number is the edge switch's uplink, the
// next the aggregation switch's: what digit reversal relies on.
func TestPaths_digitsAreUplinks(t *testing.T) {
	for _, top := range fabrics(t) {
		everyPath(t, top, func(src, dst NodeID, set PathSet, n int, p Path) {
			for level := len(set.Bases) - 1; level >= 0; level-- {
				l := top.Link(p.Links[level+1])
				downPorts := 0
				for _, port := range top.Ports(l.A) {
					if !port.Up {
						downPorts++
					}
				}
				if digit := l.PortA - downPorts; digit != n%set.Bases[level] {
					t.Fatalf("%v: %s: digit %d of path is %d, uplink %d", top, names(top, p.Hops), level, n%set.Bases[level], digit)
				}
				n /= set.Bases[level]
			}
		})
	}
}

func TestPaths_randomFailures(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, top := range fabrics(t) {
		pairs := samplePairs(top)
		for range 30 {
			down := map[LinkID]bool{}
			cut := top
			for range 1 + rng.IntN(top.NumLinks()/2) {
				l := LinkID(rng.IntN(top.NumLinks()))
				down[l] = true
				cut = cut.Without(l)
			}
			checkLive(t, cut, pairs, func(l LinkID) bool { return !down[l] })
		}
	}
}
