package graph

import (
	"net/netip"
	"slices"
)

// Bounds of every Graph.
const (
	// MaxTier is the highest tier of a switch. Edge switches have tier 1.
	MaxTier = 5
	// MaxNodes bounds hosts and switches together.
	MaxNodes = 1 << 17
	// MaxLinks bounds cables. Each link of a bundle counts.
	MaxLinks = 1 << 20
	// MaxRate bounds a link's rate, in Mbit/s.
	MaxRate = 1e7
)

// NodeID numbers nodes densely: hosts first, then switches by tier.
type NodeID int32

// LinkID numbers cables densely, in the order of their lower ends.
type LinkID int32

// Node is a host (tier 0) or a switch. The slices must not be changed.
type Node struct {
	Name string
	Tier int
	// Addresses are the node's own, of both families. At a switch the first of a family is
	// where packets bounce.
	Addresses []netip.Addr
	// Prefixes are, of an edge switch, its racks'; of a host, what is behind it. Other
	// switches have none.
	Prefixes []netip.Prefix
	AS       uint32 // 0: none is known
	SIDs     SIDs   // of a switch
	Line     int    // in the file that says so; 0: none
}

// IPv4 returns the first of the node's addresses that is one of IPv4; the zero Addr if there is none.
func (n Node) IPv4() netip.Addr {
	for _, a := range n.Addresses {
		if a.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

// Link is a cable. In a Graph, Ends[0] is the end in the lower tier.
type Link struct {
	Ends  [2]string
	Ports [2]string // names of the interfaces, "" where not known
	Rate  float64   // Mbit/s; 0: not known
	Line  int       // in the file that says so; 0: none
}

// Spec is what a Graph is made of. Nodes and Links may be in any order.
type Spec struct {
	Nodes []Node
	Links []Link
}

// Graph is a fabric.
type Graph struct {
	nodes  []Node
	links  []Link
	ends   [][2]NodeID // by link, the lower end first
	byName map[string]NodeID
	first  [MaxTier + 2]NodeID // of each tier; then the number of nodes
	up     [][]Port            // by node, in the order of the Spec's links
	down   [][]Port
	above  [][]NodeID // by node, ascending: it and what one reaches by going up
	byAddr map[netip.Addr]NodeID
	byNet  map[netip.Prefix]NodeID
	bits   [2][]int // lengths of the prefixes in byNet, longest first; IPv4, IPv6
}

// Port is one end of a cable as its node sees it.
type Port struct {
	Link LinkID
	Peer NodeID
}

// NumNodes returns the number of hosts and switches.
func (g *Graph) NumNodes() int { return len(g.nodes) }

// NumHosts returns the number of hosts. Their numbers are 0 to NumHosts-1.
func (g *Graph) NumHosts() int { return int(g.first[1]) }

// NumLinks returns the number of cables.
func (g *Graph) NumLinks() int { return len(g.links) }

// Node returns a node by its number.
func (g *Graph) Node(id NodeID) Node { return g.nodes[id] }

// Link returns a cable by its number.
func (g *Graph) Link(id LinkID) Link { return g.links[id] }

// Ends returns the nodes that a cable joins, that of the lower tier first.
func (g *Graph) Ends(id LinkID) (low, high NodeID) { return g.ends[id][0], g.ends[id][1] }

// Up returns a node's ports to the tier above, Down those to the tier below. They must not
// be changed.
func (g *Graph) Up(id NodeID) []Port   { return g.up[id] }
func (g *Graph) Down(id NodeID) []Port { return g.down[id] }

// Tier returns the numbers of a tier's nodes: from first up to, and without, end.
func (g *Graph) Tier(tier int) (first, end NodeID) { return g.first[tier], g.first[tier+1] }

// ByName finds a node.
func (g *Graph) ByName(name string) (NodeID, bool) {
	id, ok := g.byName[name]
	return id, ok
}

// ByAddr finds the node that has an address as its own.
func (g *Graph) ByAddr(a netip.Addr) (NodeID, bool) {
	id, ok := g.byAddr[a]
	return id, ok
}

// Behind finds the node that packets to an address leave the fabric at: the host whose
// address it is or in whose prefix it is, or else the edge switch of whose rack it is. The
// longest prefix decides.
func (g *Graph) Behind(a netip.Addr) (NodeID, bool) {
	if id, ok := g.byAddr[a]; ok {
		return id, true
	}
	for _, bits := range g.bits[family(a)] {
		p, _ := a.Prefix(bits)
		if id, ok := g.byNet[p]; ok {
			return id, true
		}
	}
	return 0, false
}

// Edges returns the edge switches of a host, or an edge switch itself, in the order of the
// uplinks and each once.
func (g *Graph) Edges(id NodeID) []NodeID {
	if g.nodes[id].Tier > 0 {
		return []NodeID{id}
	}
	var list []NodeID
	for _, p := range g.up[id] {
		if !slices.Contains(list, p.Peer) {
			list = append(list, p.Peer)
		}
	}
	return list
}

// family is 0 of IPv4 and 1 of IPv6.
func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}
