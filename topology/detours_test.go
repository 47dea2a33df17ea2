package topology

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// ways counts the ways of a packet that goes up and then down, over what is
// live and not higher than it must. It knows the wiring and nothing else.
func (f tables) ways(src, dst NodeID) int {
	top := f.top
	a, b := top.position(src), top.position(dst)
	height := LayerCore
	switch {
	case src == dst:
		return 1
	case a.pod == b.pod && a.sw == b.sw:
		height = LayerEdge
	case a.pod == b.pod:
		height = LayerAgg
	}
	var climb, descend func(at NodeID) int
	descend = func(at NodeID) (n int) {
		if at == dst {
			return 1
		}
		for _, p := range f.ports[at] {
			if !p.Up && top.Live(p.Link) {
				n += descend(p.Peer)
			}
		}
		return n
	}
	climb = func(at NodeID) (n int) {
		if top.Node(at).Layer == height {
			return descend(at)
		}
		for _, p := range f.ports[at] {
			if p.Up && top.Live(p.Link) {
				n += climb(p.Peer)
			}
		}
		return n
	}
	return climb(src)
}

// Un-encapsulated packets arrive whichever next hop ECMP takes, over every way
// that there is, with whatever is down and wherever.
func TestRoutes_ecmpArrivesOverEveryWay(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, whole := range fabrics(t) {
		for round := range 12 {
			top := whole
			for i := range top.NumLinks() {
				// Hosts' own links stay: no route mends them.
				if i >= top.numHosts() && rng.IntN(24) < round {
					top = top.Without(LinkID(i))
				}
			}
			f := tablesOf(top)
			cut := 0
			for src := range NodeID(top.NumHosts()) {
				for dst := range NodeID(top.NumHosts()) {
					if (src+dst)%3 != 0 && top.NumHosts() > 20 {
						continue
					}
					want := f.ways(src, dst)
					for _, a := range []netip.Addr{top.Node(dst).Addr, top.EmbeddedAddr(dst)} {
						arrived := 0
						f.explore(t, src, a, 0, func(at NodeID, ok bool) {
							switch {
							case ok && at == dst:
								arrived++
							case want > 0 || ok:
								t.Fatalf("seed %d: %v without %v: %s to %v ends at %s", seed, top, top.Down(), top.Node(src).Name, a, top.Node(at).Name)
							}
						})
						if arrived != want {
							t.Fatalf("seed %d: %v without %v: %s to %v arrives in %d ways, want %d", seed, top, top.Down(), top.Node(src).Name, a, arrived, want)
						}
						if want == 0 {
							cut++
						}
					}
				}
			}
			if round == 0 && cut > 0 {
				t.Fatalf("%v: %d pairs cut off though nothing is down", top, cut)
			}
		}
	}
}

// Thesis §3.1.8: what is far away is mended, too.
func TestRoutes_detours(t *testing.T) {
	route := func(top *Topology, node, prefix string) (Route, bool) {
		for _, r := range top.Routes(mustLookup(t, top, node)) {
			if r.Prefix == netip.MustParsePrefix(prefix) {
				return r, true
			}
		}
		return Route{}, false
	}
	fat := mustFatTree(t, 4)
	for _, c := range []struct {
		down, node, prefix string
		want               []int // ports; nil: no such route
	}{
		// A rack's link: its pod's switches and those of others go round it.
		{"e3.1-a3.2", "e0.0", "10.3.1.0/24", []int{3}},
		{"e3.1-a3.2", "e3.0", "10.3.1.0/24", []int{3}},
		{"e3.1-a3.2", "e0.0", "10.3.0.0/24", nil},
		{"e3.1-a3.2", "a0.2", "10.3.1.0/24", []int{}}, // ends there: no way down from its cores
		{"e3.1-a3.2", "a0.3", "10.3.1.0/24", nil},
		{"e3.1-a3.2", "a3.2", "10.3.1.0/24", []int{}},
		// A core's link: the aggregation switches on that core go round it; edge
		// switches need not, and send less that way (TestRoutes_weights).
		{"a3.2-c1.1", "a0.2", "10.3.0.0/16", []int{3}},
		{"a3.2-c1.1", "e0.0", "10.3.0.0/16", []int{2, 3}},
		{"a3.2-c1.1", "e0.0", "10.2.0.0/16", nil},
		{"a3.2-c1.1", "a0.3", "10.3.0.0/16", nil},
	} {
		l, err := fat.LinkByName(c.down)
		if err != nil {
			t.Fatal(err)
		}
		r, ok := route(fat.Without(l.ID), c.node, c.prefix)
		if ok != (c.want != nil) || !slices.Equal(r.Ports, c.want) {
			t.Errorf("without %s: %s routes %s to %v, %v; want %v", c.down, c.node, c.prefix, r.Ports, ok, c.want)
		}
	}
	if r, ok := route(fat, "a0.2", "10.3.0.0/16"); ok {
		t.Errorf("nothing is down, but there is %v", r)
	}
}
