package bgp

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"weft/topology/graph"
	"weft/topology/graph/graphtest"
)

// hear gives a Table what a leaf sends its host where all switches pass on all paths, each
// that does not go down and up again.
func hear(g *graph.Graph, from graph.NodeID, tab *Table) {
	ids := make(map[netip.Prefix]uint32)
	seen := make(map[string]bool)
	var walk func(n graph.NodeID, up bool, path []uint32)
	walk = func(n graph.NodeID, up bool, path []uint32) {
		path = append(slices.Clone(path), g.Node(n).AS)
		key := string(runes(path))
		if seen[key] { // parallel links
			return
		}
		seen[key] = true
		announce := slices.Clone(g.Node(n).Prefixes)
		for _, a := range g.Node(n).Addresses {
			announce = append(announce, netip.PrefixFrom(a, a.BitLen()))
		}
		for _, p := range announce {
			ids[p]++
			tab.Set(Key{leaf, p, ids[p]}, Route{ASPath: path})
		}
		if up {
			for _, p := range g.Up(n) {
				walk(p.Peer, true, path)
			}
		}
		if !up && g.Node(n).Tier == 1 { // a valley: a rack's switch passes on what is above it
			for _, p := range g.Up(n) {
				if over := g.Node(p.Peer); !slices.Contains(path, over.AS) {
					for _, a := range over.Addresses {
						ids[netip.PrefixFrom(a, a.BitLen())]++
						tab.Set(Key{leaf, netip.PrefixFrom(a, a.BitLen()), ids[netip.PrefixFrom(a, a.BitLen())]}, Route{ASPath: append(slices.Clone(path), over.AS)})
					}
				}
			}
		}
		for _, p := range g.Down(n) {
			if g.Node(p.Peer).Tier > 0 && !slices.Contains(path, g.Node(p.Peer).AS) {
				walk(p.Peer, false, path)
			}
		}
	}
	walk(from, true, nil)
}

func runes(path []uint32) (r []rune) {
	for _, as := range path {
		r = append(r, rune(as))
	}
	return r
}

// What a host makes of the routes has the paths from its leaf that the fabric has.
func TestSpec_hasThePathsOfTheFabric(t *testing.T) {
	pairs, several := 0, 0
	for seed := range uint64(200) {
		s := graphtest.Random(seed)
		g, err := graph.New(s)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(seed, 5))
		first, end := g.Tier(1)
		own := first + graph.NodeID(r.IntN(int(end-first)))
		tab := NewTable(Config{Neighbors: map[netip.Addr]uint32{leaf: g.Node(own).AS}})
		hear(g, own, tab)
		spec, guesses := tab.Spec(self)
		h, err := graph.New(spec)
		if err != nil {
			t.Fatalf("seed %d: %v\n%v\nof\n%s", seed, err, guesses, g.Text())
		}
		for dst := first; dst < end; dst++ {
			want := bounces(g, own, dst)
			at, ok := h.Behind(g.Node(dst).Prefixes[0].Addr())
			if !ok {
				if len(want) > 0 {
					t.Fatalf("seed %d: %s is not known\n%v", seed, g.Node(dst).Name, guesses)
				}
				continue
			}
			if got := bounces(h, 0, at); !slices.Equal(got, want) {
				t.Fatalf("seed %d: to %s by %v, want %v\n%v\n%s\nof\n%s", seed, g.Node(dst).Name, got, want, guesses, h.Text(), g.Text())
			}
			pairs++
			if len(want) > 1 {
				several++
			}
		}
	}
	if pairs < 300 || several < 100 {
		t.Errorf("%d pairs, %d of them with several paths: too few to show anything", pairs, several)
	}
}

// bounces are the addresses that packets bounce at, in order.
func bounces(g *graph.Graph, src, dst graph.NodeID) (list []netip.Addr) {
	p := g.Paths(src, dst)
	live, _ := p.Live(nil)
	for _, n := range live {
		list = append(list, g.Node(p.List[n].Bounce).Addresses[0])
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}
