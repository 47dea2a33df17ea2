package graph

import "slices"

// Down says which links are down.
type Down func(LinkID) bool

// Live returns the numbers of the paths that live, ascending, and their rates in Mbit/s: 0
// where that of a link is not known. A path's rate is the traffic at which the first link of
// its ways is full, if each switch divides what it forwards to one address equally among
// the links that lead there. The hosts' own links do not count. A nil down means that none
// is.
func (p Paths) Live(down Down) (live []int, rates []float64) {
	if down == nil {
		down = func(LinkID) bool { return false }
	}
	g := p.g
	falls := make(map[NodeID]float64) // by switch: the rate of the ways down from it
	for n, path := range p.List {
		up, ok := g.flow(path.edge, down, true, func(at NodeID) bool { return at == path.Bounce })
		if !ok {
			continue
		}
		fall, known := falls[path.Bounce]
		if !known {
			var ok bool
			if fall, ok = g.flow(path.Bounce, down, false, func(at NodeID) bool { return slices.Contains(p.dst, at) }); !ok {
				fall = -1
			}
			falls[path.Bounce] = fall
		}
		if fall < 0 {
			continue
		}
		live, rates = append(live, n), append(rates, slower(up, fall))
	}
	return live, rates
}

// slower returns the lesser of two rates, 0 if one is not known.
func slower(a, b float64) float64 {
	if a == 0 || b == 0 {
		return 0
	}
	return min(a, b)
}

// flow returns the greatest traffic from a switch, going up or down only, to those that are
// the end, and false if there is no way. It is 0 if a link's rate is not known.
func (g *Graph) flow(from NodeID, down Down, up bool, end func(NodeID) bool) (rate float64, ok bool) {
	w := wave{g: g, down: down, up: up, end: end, leads: make(map[NodeID]bool)}
	if !w.reaches(from) {
		return 0, false
	}
	part := map[NodeID]float64{from: 1}
	level := []NodeID{from}
	unknown, most := false, 0.0 // most is the greatest part per Mbit/s on a link
	for len(level) > 0 {
		var next []NodeID
		for _, n := range level {
			if end(n) {
				continue
			}
			ports := w.ports(n)
			share := part[n] / float64(len(ports))
			for _, p := range ports {
				if r := g.links[p.Link].Rate; r == 0 {
					unknown = true
				} else {
					most = max(most, share/r)
				}
				if _, seen := part[p.Peer]; !seen {
					next = append(next, p.Peer)
				}
				part[p.Peer] += share
			}
		}
		level = next
	}
	if unknown || most == 0 {
		return 0, true
	}
	return 1 / most, true
}

// wave finds the ways from a switch to others.
type wave struct {
	g     *Graph
	down  Down
	up    bool
	end   func(NodeID) bool
	leads map[NodeID]bool
}

// reaches reports whether a way leads from a node to an end.
func (w *wave) reaches(n NodeID) bool {
	if w.end(n) {
		return true
	}
	ok, known := w.leads[n]
	if !known {
		ok = len(w.ports(n)) > 0
		w.leads[n] = ok
	}
	return ok
}

// ports returns the live links of a node that lead to an end.
func (w *wave) ports(n NodeID) (list []Port) {
	all := w.g.down[n]
	if w.up {
		all = w.g.up[n]
	}
	for _, p := range all {
		if !w.down(p.Link) && w.g.nodes[p.Peer].Tier > 0 && w.reaches(p.Peer) {
			list = append(list, p)
		}
	}
	return list
}
