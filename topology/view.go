package topology

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"

	"weft/topology/graph"
)

// view is a fabric that is data, as one of its hosts sees it. Between the host's own edge
// switches and a rack lie the paths that the Graph counts. A path is two links here: one
// stands for all ways up to the bouncing switch, the other for all ways down from it. A
// host learns of these two what it learns at all, by probes and by BGP, and what lies
// between is the choice of the switches' own ECMP.
//
// Nodes are the host, then the racks, then the bouncing switches in the order of the Graph.
// A rack is the edge switches that prefixes have in common. Links are the host's, then the
// ways up, then the ways down rack by rack.
type view struct {
	nodes   []Node
	racks   []viewRack
	links   []Link
	homes   []Uplink // the host's own links, by their numbers
	up      int      // the first link up
	down    int      // the first link down
	byNet   map[netip.Prefix]NodeID
	bits    [2][]int // lengths of the prefixes in byNet, longest first; IPv4, IPv6
	byName  map[string]NodeID
	byAddr  map[netip.Addr]NodeID
	uplinks map[viewEnds]LinkID // the ways up
	byEnds  map[[2]NodeID]LinkID
	sids    []bounceSIDs // of the bouncing switches, in their order; zero where one has none
	source6 netip.Addr   // the host's IPv6 address
}

// viewEnds are the ends of a link between switches: an edge switch or a rack, and a
// bouncing switch.
type viewEnds struct{ low, high graph.NodeID }

// viewRack is the edge switches that have prefixes in common.
type viewRack struct {
	prefixes []netip.Prefix
	list     *pathList // nil: one of its edge switches is the host's own, or no path is known
	first    LinkID    // down to it, one from each of the list's bouncing switches
	rates    []float64 // by path; nil: they are equal, or not known
	rate     float64   // of the slowest path in Mbit/s; 0: not known
}

// slowest returns the rate of the slowest path in Mbit/s, 0 if no rates are known.
func (v *view) slowest() (rate float64) {
	for i := range v.racks {
		rate = slower(rate, v.racks[i].rate)
	}
	return rate
}

// pathList is the paths to racks that bounce at the same switches, by number.
type pathList struct {
	number int // from 1, in the view
	paths  []viewPath
	downs  []NodeID // the bouncing switches, each once
	bases  []int    // of codes
	codes  []int    // of each path: its digits as a number, ascending

	byBounce map[NodeID]int // the first path by a switch
}

type viewPath struct {
	bounce NodeID
	up     LinkID
	down   int // place in downs
	from   int // the link of the host's that it begins with
}

// FromGraph returns the fabric g as the host sees it that has the address self, as its own
// or, as an embedded stack's is, within a prefix behind it. Packets bounce at addresses of the
// same family. An error names what is missing in the Graph.
func FromGraph(g *graph.Graph, self netip.Addr) (*Topology, error) {
	return viewFrom(g, self, nil)
}

// FromHeard is FromGraph for what switches tell of themselves, which may have gaps. Paths by
// bouncing switches without an address of the family or, with sids, without SIDs are left
// out, and so are paths above MaxPaths, and racks to which none is left.
func FromHeard(g *graph.Graph, self netip.Addr, sids bool) (*Topology, error) {
	return viewFrom(g, self, &gaps{sids: sids, paths: make(map[graph.NodeID]graph.Paths)})
}

func viewFrom(g *graph.Graph, self netip.Addr, gaps *gaps) (*Topology, error) {
	id, ok := g.Behind(self)
	if !ok || int(id) >= g.NumHosts() {
		return nil, fmt.Errorf("graph: no host has the address %v, or a prefix with it behind it", self)
	}
	b := viewBuilder{g: g, host: id, own: g.Edges(id), is4: self.Is4(), gaps: gaps, sets: make(map[string]int),
		view: &view{byNet: make(map[netip.Prefix]NodeID), byName: make(map[string]NodeID), byAddr: make(map[netip.Addr]NodeID), uplinks: make(map[viewEnds]LinkID),
			byEnds: make(map[[2]NodeID]LinkID)}}
	b.addHost(self)
	b.findRacks()
	if err := b.addPaths(); err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	b.addNodes()
	b.addLinks()
	hash := sha256.Sum256(fmt.Appendf(g.Text(), "%v", self))
	return &Topology{spec: fmt.Sprintf("graph:%x", hash[:12]), view: b.view}, nil
}

// family is 0 of IPv4 and 1 of IPv6.
func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// rackOf returns the rack that an address is in, by the longest prefix.
func (v *view) rackOf(a netip.Addr) (NodeID, bool) {
	for _, bits := range v.bits[family(a)] {
		p, err := a.Prefix(bits)
		if err != nil {
			return 0, false
		}
		if id, ok := v.byNet[p]; ok {
			return id, true
		}
	}
	return 0, false
}

// rack returns that of a node; nil if it is a bouncing switch.
func (v *view) rack(id NodeID) *viewRack {
	if id == 0 {
		return &v.racks[0]
	}
	if i := int(id) - 1; i < len(v.racks) {
		return &v.racks[i]
	}
	return nil
}

// paths returns the set to a rack, of which links may be down.
func (v *view) paths(t *Topology, dst NodeID) PathSet {
	r := v.rack(dst)
	s := PathSet{t: t, rack: r}
	if r == nil || r.list == nil {
		return s
	}
	s.Bases = r.list.bases
	n := len(r.list.paths)
	s.Live = numbers[:n:n]
	if t.down != nil {
		s.Live = make([]int, 0, n)
		for i := range r.list.paths {
			if up, down := r.ends(i); t.Live(up) && t.Live(down) {
				s.Live = append(s.Live, i)
			}
		}
	}
	return s
}

// ends returns the links of a path.
func (r *viewRack) ends(n int) (up, down LinkID) {
	p := &r.list.paths[n]
	return p.up, r.first + LinkID(p.down)
}

// onPaths reports whether a link lies on one of the paths to a rack.
func (v *view) onPaths(l LinkID, dst NodeID) bool {
	r := v.rack(dst)
	switch {
	case r == nil || r.list == nil || int(l) < v.up:
		return false
	case int(l) >= v.down:
		return l >= r.first && int(l-r.first) < len(r.list.downs)
	}
	return slices.ContainsFunc(r.list.paths, func(p viewPath) bool { return p.up == l })
}

// ports returns those of a node, those that lead down first. Their numbers mean nothing.
func (v *view) ports(id NodeID) (list []Port) {
	for _, up := range []bool{false, true} {
		for _, l := range v.links {
			switch {
			case up && l.A == id:
				list = append(list, Port{len(list), l.ID, l.B, 0, true})
			case !up && l.B == id:
				list = append(list, Port{len(list), l.ID, l.A, 0, false})
			}
		}
	}
	return list
}

// between returns the link from a node up to another.
func (v *view) between(low, high NodeID) (LinkID, bool) {
	l, ok := v.byEnds[[2]NodeID{low, high}]
	return l, ok
}

// comparePrefixes orders prefixes by family, address and length.
func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

// viewPath is Path between the host and an edge switch.
func (s PathSet) viewPath(n int) Path {
	up, down := s.rack.ends(n)
	v := s.t.view
	return Path{Hops: []NodeID{v.links[up].A, v.links[up].B, v.links[down].A}, Links: []LinkID{up, down}}
}

// List tells sets of one topology apart that have other bouncing switches for their numbers,
// where the fabric is data. It is 0 where the fabric is computed, in which the first bouncing
// switch does (Addr), and for a set that is Direct.
func (s PathSet) List() int {
	if s.rack == nil || s.rack.list == nil {
		return 0
	}
	return s.rack.list.number
}

// Ordered returns the order in which a rule visits a list of paths, which is ascending and
// may have a path several times. rule is given the choices per digit and the paths' numbers
// in that mixed radix system, and returns these numbers in another order, such as
// drb.Rule.Order does.
func (s PathSet) Ordered(rule func(bases, paths []int) []int, list []int) []int {
	if s.rack == nil || s.rack.list == nil {
		return rule(s.Bases, list)
	}
	codes := s.rack.list.codes
	numbers := make([]int, len(list))
	for i, n := range list {
		numbers[i] = codes[n]
	}
	order := slices.Clone(rule(s.Bases, numbers))
	for i, code := range order {
		order[i], _ = slices.BinarySearch(codes, code)
	}
	return order
}

// Via returns the first path that bounces at an address; false if none does.
func (s PathSet) Via(bounce netip.Addr) (n int, ok bool) {
	if s.rack == nil {
		for n := range s.Count() {
			if s.Addr(n) == bounce {
				return n, true
			}
		}
		return 0, false
	}
	id, known := s.t.view.byAddr[bounce]
	if s.rack.list == nil || !known {
		return 0, false
	}
	n, ok = s.rack.list.byBounce[id]
	return n, ok
}

// Computed reports whether the fabric is one of the computed kinds, and not data. In these
// a path has the same number in both directions, addresses follow from the shape, and links
// are cables.
func (t *Topology) Computed() bool { return t.view == nil }

// Alike reports whether two views of fabrics that are data have the same nodes and links, by
// their names and numbers, as those of one host's addresses of both families have.
func (t *Topology) Alike(u *Topology) bool {
	same := func(a, b Node) bool { return a.Name == b.Name }
	return t.view != nil && u.view != nil && slices.EqualFunc(t.view.nodes, u.view.nodes, same) && slices.Equal(t.view.links, u.view.links)
}

// Uplink returns the first choice on the way up of path number n: the most significant
// digit.
func (s PathSet) Uplink(n int) int {
	below := 1
	for _, base := range s.Bases[1:] {
		below *= base
	}
	if s.rack != nil {
		n = s.rack.list.codes[n]
	}
	return n / below
}
