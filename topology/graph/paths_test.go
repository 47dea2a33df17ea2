package graph_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"weft/topology/graph"
	"weft/topology/graph/graphtest"
)

// walk is a way of a packet from an edge switch up to its highest switch and down to an
// edge switch, never turning otherwise.
type walk struct {
	peak        graph.NodeID
	edge        graph.NodeID // that it begins at
	up, falling []graph.LinkID
}

// walks finds, by looking at all of them, the ways between two sets of edge switches over
// links that are not down.
func walks(g *graph.Graph, src, dst []graph.NodeID, down graph.Down) (all []walk) {
	var fall func(n graph.NodeID, w walk)
	fall = func(n graph.NodeID, w walk) {
		if slices.Contains(dst, n) {
			w.falling = slices.Clone(w.falling)
			all = append(all, w)
			return // an edge switch has hosts only below
		}
		for l := range g.NumLinks() {
			if low, high := g.Ends(graph.LinkID(l)); high == n && g.Node(low).Tier > 0 && !down(graph.LinkID(l)) {
				v := w
				v.falling = append(slices.Clone(w.falling), graph.LinkID(l))
				fall(low, v)
			}
		}
	}
	var climb func(n graph.NodeID, w walk)
	climb = func(n graph.NodeID, w walk) {
		w.peak = n
		fall(n, w)
		for l := range g.NumLinks() {
			if low, high := g.Ends(graph.LinkID(l)); low == n && !down(graph.LinkID(l)) {
				v := w
				v.up = append(slices.Clone(w.up), graph.LinkID(l))
				climb(high, v)
			}
		}
	}
	for _, e := range src {
		climb(e, walk{edge: e})
	}
	return all
}

func none(graph.LinkID) bool { return false }

// Paths and their lives are those that a search of all ways finds.
func TestPaths_matchASearchOfAllWays(t *testing.T) {
	paths, dead, shared := 0, 0, 0
	for seed := range uint64(200) {
		g, err := graph.New(graphtest.Random(seed))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		r := rand.New(rand.NewPCG(seed, 3))
		cut := make(map[graph.LinkID]bool)
		for range r.IntN(4) {
			if g.NumLinks() > 0 {
				cut[graph.LinkID(r.IntN(g.NumLinks()))] = true
			}
		}
		down := func(l graph.LinkID) bool { return cut[l] }
		first, end := g.Tier(1)
		for range 12 {
			src, dst := graph.NodeID(r.IntN(int(end))), graph.NodeID(r.IntN(int(end)))
			if r.IntN(3) == 0 {
				src = first + graph.NodeID(r.IntN(int(end-first)))
			}
			p := g.Paths(src, dst)
			direct := slices.ContainsFunc(g.Edges(src), func(e graph.NodeID) bool { return slices.Contains(g.Edges(dst), e) })
			if p.Direct != direct || direct && len(p.List) > 0 {
				t.Fatalf("seed %d: %d to %d: direct %v", seed, src, dst, p.Direct)
			}
			if direct {
				continue
			}
			type place struct{ edge, peak graph.NodeID }
			all, lowest := make(map[place]bool), graph.MaxTier+1
			whole := walks(g, g.Edges(src), g.Edges(dst), none)
			for _, w := range whole {
				lowest = min(lowest, g.Node(w.peak).Tier)
			}
			ways := make(map[place]int)
			for _, w := range whole {
				if g.Node(w.peak).Tier == lowest {
					all[place{w.edge, w.peak}] = true
					ways[place{w.edge, w.peak}]++
				}
			}
			alive := make(map[place][]walk)
			for _, w := range walks(g, g.Edges(src), g.Edges(dst), down) {
				if pl := (place{w.edge, w.peak}); all[pl] {
					alive[pl] = append(alive[pl], w)
				}
			}
			if len(p.List) != len(all) {
				t.Fatalf("seed %d: %d to %d: %d paths, want %d", seed, src, dst, len(p.List), len(all))
			}
			live, rates := p.Live(down)
			for n, path := range p.List {
				pl := place{edgeOf(g, src, path), path.Bounce}
				if !all[pl] {
					t.Fatalf("seed %d: %d to %d: path %d bounces at %s", seed, src, dst, n, g.Node(path.Bounce).Name)
				}
				if up, down := p.Ways(n); up*down != ways[pl] {
					t.Fatalf("seed %d: %d to %d: path %d has %d ways up and %d down, want %d together", seed, src, dst, n, up, down, ways[pl])
				}
				if n > 0 && slices.Compare(p.List[n-1].Digits, path.Digits) >= 0 {
					t.Fatalf("seed %d: digits %v, then %v", seed, p.List[n-1].Digits, path.Digits)
				}
				i, ok := slices.BinarySearch(live, n)
				if want := len(alive[pl]) > 0; ok != want {
					t.Fatalf("seed %d: %d to %d: path %d live %v, want %v", seed, src, dst, n, ok, want)
				}
				if !ok {
					dead++
					continue
				}
				paths++
				if len(alive[pl]) > 1 {
					shared++
				}
				if want := capacity(g, alive[pl]); math.Abs(rates[i]-want) > 1e-6*want {
					t.Fatalf("seed %d: %d to %d: path %d has %v Mbit/s, want %v", seed, src, dst, n, rates[i], want)
				}
			}
		}
	}
	if paths < 1000 || dead < 50 || shared < 300 {
		t.Errorf("%d live paths, %d dead, %d of several ways: too few to show anything", paths, dead, shared)
	}
}

// capacity is the traffic at which the first link of some ways is full: each switch divides
// equally among the links by which one of the ways goes on.
func capacity(g *graph.Graph, ways []walk) float64 {
	least := math.Inf(1)
	for _, part := range []func(walk) []graph.LinkID{func(w walk) []graph.LinkID { return w.up }, func(w walk) []graph.LinkID { return w.falling }} {
		next := make(map[graph.NodeID][]graph.LinkID) // the links by which ways leave a node
		distinct := make(map[string]walk)
		for _, w := range ways {
			key := ""
			for _, l := range part(w) {
				key += string(rune(l)) + ","
			}
			distinct[key] = w
			for i, l := range part(w) {
				if n := leaving(g, part(w), i); !slices.Contains(next[n], l) {
					next[n] = append(next[n], l)
				}
			}
		}
		load := make(map[graph.LinkID]float64)
		for _, w := range distinct {
			chance := 1.0 // that a packet takes this way
			for i := range part(w) {
				chance /= float64(len(next[leaving(g, part(w), i)]))
			}
			for _, l := range part(w) {
				load[l] += chance
			}
		}
		for l, of := range load {
			r := g.Link(l).Rate
			if r == 0 {
				return 0
			}
			least = min(least, r/of)
		}
	}
	return least
}

// leaving is the node that a way leaves by its i-th link.
func leaving(g *graph.Graph, way []graph.LinkID, i int) graph.NodeID {
	low, high := g.Ends(way[i])
	if i == 0 { // the end that the next link, if there is one, does not have
		if len(way) == 1 {
			return -1 // alike for all ways of one link: they begin at one switch
		}
		a, b := g.Ends(way[1])
		if low == a || low == b {
			return high
		}
		return low
	}
	a, b := g.Ends(way[i-1])
	if low == a || low == b {
		return low
	}
	return high
}

// edgeOf is the edge switch that a path begins at.
func edgeOf(g *graph.Graph, src graph.NodeID, p graph.Path) graph.NodeID {
	edges := g.Edges(src)
	if len(edges) == 1 {
		return edges[0]
	}
	return edges[p.Digits[0]]
}
