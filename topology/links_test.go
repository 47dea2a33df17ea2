package topology

import (
	"slices"
	"testing"
)

func TestLink_portsAgreeFromBothSides(t *testing.T) {
	for _, top := range fabrics(t) {
		ends := make([]int, top.NumLinks())
		for n := range top.Nodes() {
			ports := top.Ports(n.ID)
			above := 0
			for i, p := range ports {
				if p.Up {
					above++
				}
				ends[p.Link]++
				l := top.Link(p.Link)
				near, nearPort, far, farPort := l.A, l.PortA, l.B, l.PortB
				if !p.Up {
					near, nearPort, far, farPort = l.B, l.PortB, l.A, l.PortA
				}
				if l.ID != p.Link || p.Index != i || near != n.ID || nearPort != i || far != p.Peer || farPort != p.PeerPort {
					t.Fatalf("%v: port %d of %s is %+v, but the link is %+v", top, i, n.Name, p, l)
				}
				if back := top.Ports(p.Peer)[p.PeerPort]; back.Link != p.Link || back.Peer != n.ID || back.PeerPort != i || back.Up == p.Up {
					t.Fatalf("%v: port %d of %s is %+v, but the other end %+v", top, i, n.Name, p, back)
				}
				if i > 0 && ports[i-1].Up && !p.Up {
					t.Fatalf("%v: %s has a port up before one down", top, n.Name)
				}
				if up := top.Node(p.Peer).Layer == n.Layer+1; up != p.Up {
					t.Fatalf("%v: port %d of %s, up %v, leads to %s", top, i, n.Name, p.Up, top.Node(p.Peer).Name)
				}
			}
			if got := top.ChoosesUp(n.ID); got != (above > 1) {
				t.Fatalf("%v: %s has a choice of %d ports up: %t", top, n.Name, above, got)
			}
		}
		for l, n := range ends {
			if n != 2 {
				t.Fatalf("%v: link %d is on %d ports", top, l, n)
			}
		}
		next := LinkID(0)
		for l := range top.Links() {
			if l != top.Link(next) || l.ID != next {
				t.Fatalf("%v: Links yields %+v, want number %d", top, l, next)
			}
			next++
		}
		if int(next) != top.NumLinks() {
			t.Errorf("%v: Links yields %d of %d", top, next, top.NumLinks())
		}
		for range top.Links() {
			break // must not go on
		}
	}
}

// Each link taken down alone kills exactly the paths that run over it.
func TestWithout_removesExactlyThePathsOverTheLink(t *testing.T) {
	for _, top := range fabrics(t) {
		pairs := samplePairs(top)
		for l := range top.Links() {
			cut := top.Without(l.ID)
			if cut.Live(l.ID) || !top.Live(l.ID) {
				t.Fatalf("%v: link %d: live %v after, %v before", top, l.ID, cut.Live(l.ID), top.Live(l.ID))
			}
			checkLive(t, cut, pairs, func(id LinkID) bool { return id != l.ID })
		}
		checkLive(t, top, pairs, func(LinkID) bool { return true })
	}
}

func TestWithoutNode_removesExactlyThePathsThroughIt(t *testing.T) {
	for _, top := range fabrics(t) {
		pairs := samplePairs(top)
		for n := range top.Nodes() {
			if n.Layer == LayerHost {
				continue // its link is no path's choice
			}
			checkLive(t, top.WithoutNode(n.ID), pairs, func(id LinkID) bool {
				l := top.Link(id)
				return l.A != n.ID && l.B != n.ID
			})
		}
	}
}

func TestWithout_addsUp(t *testing.T) {
	top := mustFatTree(t, 4)
	pairs := samplePairs(top)
	down := map[LinkID]bool{}
	cut := top
	for _, l := range []LinkID{17, 20, 35, 47} {
		before := cut
		cut = cut.Without(l)
		if !before.Live(l) {
			t.Fatalf("link %d is down in the original", l)
		}
		down[l] = true
		checkLive(t, cut, pairs, func(id LinkID) bool { return !down[id] })
	}
	checkLive(t, top.Without(17, 20, 35, 47), pairs, func(id LinkID) bool { return !down[id] })
	if cut.String() != top.String() {
		t.Errorf("%v became %v", top, cut)
	}
}

// samplePairs pairs all hosts with a few of every kind: rack, pod, others.
func samplePairs(top *Topology) (pairs [][2]NodeID) {
	n := NodeID(top.NumHosts())
	for a := range n {
		for _, d := range []NodeID{1, n / 3, n/2 + 1, n - 2} {
			if b := (a + d) % n; b != a {
				pairs = append(pairs, [2]NodeID{a, b})
			}
		}
	}
	return pairs
}

// checkLive compares Live of every pair with the links that its paths take;
// hosts' own links are no choice.
func checkLive(t *testing.T, top *Topology, pairs [][2]NodeID, up func(LinkID) bool) {
	t.Helper()
	for _, p := range pairs {
		set := top.Paths(p[0], p[1])
		if set.Direct() {
			continue
		}
		total := 1
		for _, b := range set.Bases {
			total *= b
		}
		var want []int
		for i := range total {
			path := set.Path(i)
			if !slices.ContainsFunc(path.Links[1:len(path.Links)-1], func(l LinkID) bool { return !up(l) }) {
				want = append(want, i)
			}
		}
		if !slices.Equal(set.Live, want) {
			t.Fatalf("%v: %s to %s: live paths %v, want %v", top,
				top.Node(p[0]).Name, top.Node(p[1]).Name, set.Live, want)
		}
	}
}
