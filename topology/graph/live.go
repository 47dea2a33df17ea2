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
		up, ok := g.flow(path.edge, wave{g: g, down: down, ports: g.up,
			end:   func(at NodeID) bool { return at == path.Bounce },
			leads: func(at NodeID) bool { return g.isAbove(path.Bounce, at) }})
		if !ok {
			continue
		}
		fall, known := falls[path.Bounce]
		if !known {
			var ok bool
			if fall, ok = g.flow(path.Bounce, wave{g: g, down: down, ports: g.down,
				end:   func(at NodeID) bool { return slices.Contains(p.dst, at) },
				leads: func(at NodeID) bool { return g.aboveAny(p.dst, at) }}); !ok {
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

// flow returns the greatest traffic from a switch to the ends of a wave, and false if there
// is no way. It is 0 if a link's rate is not known.
func (g *Graph) flow(from NodeID, w wave) (rate float64, ok bool) {
	w.alive = make(map[NodeID]bool)
	if !w.reaches(from) {
		return 0, false
	}
	part := map[NodeID]float64{from: 1}
	level := []NodeID{from}
	unknown, most := false, 0.0 // most is the greatest part per Mbit/s on a link
	for len(level) > 0 {
		var next []NodeID
		for _, n := range level {
			if w.end(n) {
				continue
			}
			ports := w.on(n)
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

// wave finds the live ways from a switch to others, tier by tier.
type wave struct {
	g     *Graph
	down  Down
	ports [][]Port          // by node: those that lead to the next tier
	end   func(NodeID) bool // whether a way ends at a switch
	leads func(NodeID) bool // whether ways lead on from a switch while no link is down
	alive map[NodeID]bool   // by switch: whether one does now
}

// reaches reports whether a way leads from a switch to an end.
func (w *wave) reaches(n NodeID) bool {
	if w.end(n) {
		return true
	}
	ok, known := w.alive[n]
	if !known {
		ok = len(w.on(n)) > 0
		w.alive[n] = ok
	}
	return ok
}

// on returns the links of a switch by which ways go on.
func (w *wave) on(n NodeID) (list []Port) {
	for _, p := range w.ports[n] {
		if !w.down(p.Link) && w.g.nodes[p.Peer].Tier > 0 && w.leads(p.Peer) && w.reaches(p.Peer) {
			list = append(list, p)
		}
	}
	return list
}

// Ways returns how many ways lead up to the bouncing switch of path number n, and how many
// down from it, whichever links are down. Which of them a packet takes is the choice of the
// switches' own ECMP.
func (p Paths) Ways(n int) (up, down int) {
	path := p.List[n]
	g := p.g
	up = g.ways(path.edge, g.up, make(map[NodeID]int),
		func(at NodeID) bool { return at == path.Bounce }, func(at NodeID) bool { return g.isAbove(path.Bounce, at) })
	down = g.ways(path.Bounce, g.down, make(map[NodeID]int),
		func(at NodeID) bool { return slices.Contains(p.dst, at) }, func(at NodeID) bool { return g.aboveAny(p.dst, at) })
	return up, down
}

// maxWays bounds what ways counts.
const maxWays = 1 << 20

// ways counts the ways from a switch to an end. leads says from which switches there is one.
func (g *Graph) ways(from NodeID, ports [][]Port, known map[NodeID]int, end, leads func(NodeID) bool) (n int) {
	if end(from) {
		return 1
	}
	if n, ok := known[from]; ok {
		return n
	}
	for _, p := range ports[from] {
		if g.nodes[p.Peer].Tier > 0 && leads(p.Peer) {
			n = min(n+g.ways(p.Peer, ports, known, end, leads), maxWays)
		}
	}
	known[from] = n
	return n
}
