package topology

import (
	"math/rand/v2"
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
	for _, k := range []int{2, 4, 6} {
		top := mustFatTree(t, k)
		everyPath(t, top, func(src, dst, via NodeID, p Path) {
			if p.Hops[0] != src || p.Hops[len(p.Hops)-1] != dst || !slices.Contains(p.Hops, via) || len(p.Links) != len(p.Hops)-1 {
				t.Fatalf("k=%d: %+v", k, p)
			}
			for i, id := range p.Links {
				l := top.Link(id)
				if a, b := p.Hops[i], p.Hops[i+1]; !(l.A == a && l.B == b || l.A == b && l.B == a) {
					t.Fatalf("k=%d: %s: link %d is %+v", k, names(top, p.Hops), i, l)
				}
			}
		})
	}
}

// everyPath calls f for every pair of hosts and every bouncing switch of
// theirs; within a rack that is the edge switch.
func everyPath(t *testing.T, top *Topology, f func(src, dst, via NodeID, p Path)) {
	t.Helper()
	for src := range NodeID(top.NumHosts()) {
		for dst := range NodeID(top.NumHosts()) {
			if src == dst {
				continue
			}
			set := top.Paths(src, dst)
			vias := []NodeID{top.Ports(src)[0].Peer}
			if !set.Direct() {
				vias = nil
				for _, n := range set.Live {
					vias = append(vias, set.Bounce(n))
				}
			}
			for _, via := range vias {
				p, err := top.Path(src, dst, via)
				if err != nil {
					t.Fatal(err)
				}
				f(src, dst, via, p)
			}
		}
	}
}

// On the bare graph: from one host up to the bouncing switch and from there to
// the other there is one shortest way each, and it is Path's.
func TestPath_isTheOneShortestWay(t *testing.T) {
	for _, k := range []int{4, 6} {
		top := mustFatTree(t, k)
		search := map[NodeID]ways{}
		everyPath(t, top, func(src, dst, via NodeID, p Path) {
			w, ok := search[via]
			if !ok {
				w = breadthFirst(top, via)
				search[via] = w
			}
			up, down := w.to(src), w.to(dst)
			if w.count[src] != 1 || w.count[dst] != 1 {
				t.Fatalf("k=%d: %d ways from %s to %s, %d to %s", k, w.count[src], top.Node(via).Name,
					top.Node(src).Name, w.count[dst], top.Node(dst).Name)
			}
			slices.Reverse(up)
			if want := append(up, down[1:]...); !slices.Equal(p.Hops, want) {
				t.Fatalf("k=%d: %s, want %s", k, names(top, p.Hops), names(top, want))
			}
		})
	}
}

// ways are the shortest ways from one node to all others.
type ways struct {
	prev  []NodeID
	dist  []int
	count []int
}

func breadthFirst(top *Topology, from NodeID) ways {
	n := top.NumNodes()
	w := ways{make([]NodeID, n), make([]int, n), make([]int, n)}
	for i := range w.dist {
		w.dist[i] = -1
	}
	near := make([][]NodeID, n)
	for l := range top.Links() {
		near[l.A] = append(near[l.A], l.B)
		near[l.B] = append(near[l.B], l.A)
	}
	w.prev[from], w.dist[from], w.count[from] = -1, 0, 1
	for queue := []NodeID{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, to := range near[at] {
			if w.dist[to] < 0 {
				w.dist[to], w.prev[to] = w.dist[at]+1, at
				queue = append(queue, to)
			}
			if w.dist[to] == w.dist[at]+1 {
				w.count[to] += w.count[at]
			}
		}
	}
	return w
}

func (w ways) to(id NodeID) (hops []NodeID) {
	for ; id >= 0; id = w.prev[id] {
		hops = append(hops, id)
	}
	slices.Reverse(hops)
	return hops
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

func TestPaths_bouncingSwitches(t *testing.T) {
	for _, k := range []int{2, 4, 6} {
		top := mustFatTree(t, k)
		for src := range top.Hosts() {
			for dst := range top.Hosts() {
				set := top.Paths(src.ID, dst.ID)
				a, b := src.Addr.As4(), dst.Addr.As4()
				var want []NodeID
				var bases []int
				for n := range top.Nodes() {
					switch {
					case a[1] == b[1] && a[2] == b[2]:
					case a[1] == b[1]:
						bases = []int{k / 2}
						if n.Layer == LayerAgg && n.Addr.As4()[1] == a[1] {
							want = append(want, n.ID)
						}
					default:
						bases = []int{k / 2, k / 2}
						if n.Layer == LayerCore {
							want = append(want, n.ID)
						}
					}
				}
				var got []NodeID
				for i, n := range set.Live {
					if got = append(got, set.Bounce(n)); n != i {
						t.Fatalf("k=%d: live paths %v", k, set.Live)
					}
					if set.Addr(n) != top.Node(set.Bounce(n)).Addr {
						t.Fatalf("k=%d: address of path %d is %v", k, n, set.Addr(n))
					}
				}
				if !slices.Equal(got, want) || !slices.Equal(set.Bases, bases) || set.Direct() != (want == nil) {
					t.Fatalf("k=%d: %s to %s: %s in bases %v, want %s in %v", k, src.Name, dst.Name,
						names(top, got), set.Bases, names(top, want), bases)
				}
			}
		}
	}
}

// The most significant digit of a path number is the edge switch's uplink, the
// next the aggregation switch's: what digit reversal relies on.
func TestPaths_digitsAreUplinks(t *testing.T) {
	top := mustFatTree(t, 6)
	everyPath(t, top, func(src, dst, via NodeID, p Path) {
		set := top.Paths(src, dst)
		n := int(via - set.first)
		for level := len(set.Bases) - 1; level >= 0; level-- {
			l := top.Link(p.Links[level+1])
			if digit := l.PortA - 3; digit != n%set.Bases[level] {
				t.Fatalf("%s: digit %d of path is %d, uplink %d", names(top, p.Hops), level, n%set.Bases[level], digit)
			}
			n /= set.Bases[level]
		}
	})
}

func TestPaths_randomFailures(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, k := range []int{4, 6} {
		top := mustFatTree(t, k)
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
