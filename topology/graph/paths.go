package graph

import "slices"

// Path is one way to bounce: a switch, and the uplink of the source that leads to it.
type Path struct {
	Bounce NodeID
	// Digits are the choices on the way up, the lowest first: of a source with several
	// edge switches which of them, and then at each switch which of the switches above it,
	// by their places in the order of its ports. Where several ways lead up, they are those
	// of the first. They must not be changed.
	Digits []int
	edge   NodeID
}

// Edge returns the edge switch of the source that the path begins at.
func (p *Path) Edge() NodeID { return p.edge }

// Paths are those between two places.
type Paths struct {
	// List has all paths, live or not. A path's number is its place here. It is empty if
	// the two places have an edge switch in common, and need no path; see Direct.
	List     []Path
	Direct   bool
	g        *Graph
	src, dst []NodeID // edge switches
}

// Paths returns the paths from one host or edge switch to another. Those between hosts of
// the same edge switches are the same, but for the hosts' own links.
func (g *Graph) Paths(src, dst NodeID) Paths { return g.Between(g.Edges(src), g.Edges(dst)) }

// Between is Paths between hosts with these edge switches. It keeps the slices.
func (g *Graph) Between(src, dst []NodeID) Paths {
	p := Paths{g: g, src: src, dst: dst}
	for _, e := range p.src {
		p.Direct = p.Direct || slices.Contains(p.dst, e)
	}
	if p.Direct {
		return p
	}
	var over []NodeID // switches above the destination
	for _, e := range p.dst {
		over = append(over, g.above[e]...)
	}
	slices.Sort(over)
	over = slices.Compact(over)
	tier := MaxTier + 1 // where packets bounce
	var common []NodeID // over is ascending, and with it the tiers
	for _, n := range over {
		if t := g.nodes[n].Tier; t > tier {
			break
		} else if g.aboveAny(p.src, n) {
			common, tier = append(common, n), t
		}
	}
	for i, e := range p.src {
		var digits []int
		if len(p.src) > 1 {
			digits = []int{i}
		}
		seen := make(map[NodeID]bool)
		g.climb(e, tier, digits, seen, func(n NodeID, digits []int) {
			if _, ok := slices.BinarySearch(common, n); ok {
				p.List = append(p.List, Path{n, slices.Clone(digits), e})
			}
		})
	}
	return p
}

func (g *Graph) aboveAny(edges []NodeID, n NodeID) bool {
	return slices.ContainsFunc(edges, func(e NodeID) bool { return g.isAbove(n, e) })
}

// isAbove reports whether a switch is another one, or can be reached from it by going up.
func (g *Graph) isAbove(n, from NodeID) bool {
	_, ok := slices.BinarySearch(g.above[from], n)
	return ok
}

// climb visits the switches of a tier above another switch, each once, by the first way in
// the order of the ports.
func (g *Graph) climb(from NodeID, tier int, digits []int, seen map[NodeID]bool, visit func(NodeID, []int)) {
	if seen[from] {
		return
	}
	seen[from] = true
	if g.nodes[from].Tier == tier {
		visit(from, digits)
		return
	}
	for i, peer := range g.peersUp(from) {
		g.climb(peer, tier, append(digits, i), seen, visit)
	}
}

// peersUp returns the switches above a node, each once, in the order of its ports.
func (g *Graph) peersUp(n NodeID) []NodeID {
	list := make([]NodeID, 0, len(g.up[n]))
	for _, p := range g.up[n] {
		if !slices.Contains(list, p.Peer) {
			list = append(list, p.Peer)
		}
	}
	return list
}
