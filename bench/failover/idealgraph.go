package failover

import (
	"cmp"
	"slices"

	"weft/bench/permutation"
	"weft/topology"
	"weft/topology/graph"
)

// IdealOfGraph is IdealOf in a graph. A stream is spread evenly over the paths of its pair, as each
// weighs, and switches spread a path evenly over their ports that lead on. Hosts have IPv4 addresses.
func IdealOfGraph(g *graph.Graph, streams []permutation.Stream, rateMbit float64) []float64 {
	w := ways{g: g, above: make(map[[2]graph.NodeID]bool), views: make(map[graph.NodeID]*topology.Topology)}
	shares := make([]map[direction]float64, len(streams))
	capacity := make(map[direction]float64)
	for i, s := range streams {
		shares[i] = w.shares(graph.NodeID(s.From), graph.NodeID(s.To))
		for d := range shares[i] {
			capacity[d] = cmp.Or(g.Link(graph.LinkID(d.link)).Rate, rateMbit)
		}
	}
	goodput := fill(shares, capacity)
	for i := range goodput {
		goodput[i] *= Payload
	}
	return goodput
}

// ways are those that packets take in a graph.
type ways struct {
	g     *graph.Graph
	above map[[2]graph.NodeID]bool // what isAbove knows
	views map[graph.NodeID]*topology.Topology
}

// shares is how much of a stream each link carries, of 1; empty if the pair is cut off.
func (w *ways) shares(src, dst graph.NodeID) map[direction]float64 {
	sum := make(map[direction]float64)
	paths := w.g.Paths(src, dst)
	if paths.Direct {
		edges := w.g.Edges(dst)
		w.up(sum, src, 1, func(n graph.NodeID) bool { return slices.Contains(edges, n) }, func(edge graph.NodeID, x float64) {
			w.fall(sum, edge, dst, x)
		})
		return sum
	}
	weighted := w.weighted(src, dst, len(paths.List))
	for _, i := range weighted {
		p := &paths.List[i]
		w.up(sum, src, 1/float64(len(weighted)), func(n graph.NodeID) bool { return n == p.Edge() }, func(edge graph.NodeID, x float64) {
			w.climb(sum, edge, p.Bounce, x)
			w.fall(sum, p.Bounce, dst, x)
		})
	}
	return sum
}

// weighted are the numbers of a pair's paths, each as often as it weighs.
func (w *ways) weighted(src, dst graph.NodeID, n int) (numbers []int) {
	a, b := w.g.Node(src).IPv4(), w.g.Node(dst).IPv4()
	if a.IsValid() && b.IsValid() {
		if w.views[src] == nil {
			w.views[src], _ = topology.FromGraph(w.g, a) // nil: all weigh the same
		}
		if t := w.views[src]; t != nil {
			return t.PathsTo(0, b).Weighted()
		}
	}
	for i := range n {
		numbers = append(numbers, i)
	}
	return numbers
}

// up spreads x over a node's ports up to peers of a kind, and goes on from each.
func (w *ways) up(sum map[direction]float64, n graph.NodeID, x float64, leads func(graph.NodeID) bool, on func(graph.NodeID, float64)) {
	ports := slices.DeleteFunc(slices.Clone(w.g.Up(n)), func(p graph.Port) bool { return !leads(p.Peer) })
	for _, p := range ports {
		part := x / float64(len(ports))
		sum[direction{topology.LinkID(p.Link), true}] += part
		on(p.Peer, part)
	}
}

// climb spreads x over the ways up from a switch to one above it.
func (w *ways) climb(sum map[direction]float64, n, to graph.NodeID, x float64) {
	if n == to {
		return
	}
	w.up(sum, n, x, func(peer graph.NodeID) bool { return w.isAbove(to, peer) }, func(peer graph.NodeID, part float64) {
		w.climb(sum, peer, to, part)
	})
}

// fall spreads x over the ways down from a switch to a host.
func (w *ways) fall(sum map[direction]float64, n, host graph.NodeID, x float64) {
	if n == host {
		return
	}
	ports := slices.DeleteFunc(slices.Clone(w.g.Down(n)), func(p graph.Port) bool { return !w.isAbove(p.Peer, host) })
	for _, p := range ports {
		part := x / float64(len(ports))
		sum[direction{topology.LinkID(p.Link), false}] += part
		w.fall(sum, p.Peer, host, part)
	}
}

// isAbove reports whether one goes up from a node to another one, or is there.
func (w *ways) isAbove(high, low graph.NodeID) bool {
	if high == low {
		return true
	}
	key := [2]graph.NodeID{high, low}
	above, known := w.above[key]
	if !known {
		for _, p := range w.g.Up(low) {
			above = above || w.isAbove(high, p.Peer)
		}
		w.above[key] = above
	}
	return above
}
