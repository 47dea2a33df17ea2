package topology

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weft/topology/graph"
)

// viewBuilder makes a view of a Graph.
type viewBuilder struct {
	*view
	g    *graph.Graph
	host graph.NodeID
	own  []graph.NodeID // the host's edge switches, in the order of its uplinks
	is4  bool           // the family of bouncing addresses
	gaps *gaps          // nil: there must be none

	edges   [][]graph.NodeID // of each rack
	sets    map[string]int   // the place of each in edges
	bounces []graph.NodeID   // all, ascending
	found   []graph.Paths    // by rack
}

// addHost makes the host node 0, and the rack of its own edge switches the first.
func (b *viewBuilder) addHost(self netip.Addr) {
	n := b.g.Node(b.host)
	b.nodes = []Node{{Layer: LayerHost, Name: n.Name, Addr: self}}
	b.byName[n.Name] = 0
	b.byAddr[self] = 0
	if self.Is6() {
		b.source6 = self
	}
	for _, a := range n.Addresses {
		b.byAddr[a] = 0
		if a.Is6() && !b.source6.IsValid() {
			b.source6 = a
		}
	}
	b.rackFor(b.own)
}

// rackFor returns the place of the rack of some edge switches.
func (b *viewBuilder) rackFor(edges []graph.NodeID) int {
	edges = slices.Sorted(slices.Values(edges))
	var key []byte
	for _, e := range edges {
		key = binary.AppendVarint(key, int64(e))
	}
	i, ok := b.sets[string(key)]
	if !ok {
		i = len(b.edges)
		b.sets[string(key)] = i
		b.edges = append(b.edges, edges)
		b.racks = append(b.racks, viewRack{})
	}
	return i
}

// findRacks gives each prefix to the rack of all edge switches that have it, and addresses
// and prefixes of hosts that lie elsewhere to the rack of the host's edge switches.
func (b *viewBuilder) findRacks() {
	first, end := b.g.Tier(1)
	at := make(map[netip.Prefix][]graph.NodeID)
	for e := first; e < end; e++ {
		if b.gaps.cuts(b, e) {
			continue
		}
		for _, p := range b.g.Node(e).Prefixes {
			at[p] = append(at[p], e)
		}
	}
	add := func(p netip.Prefix, edges []graph.NodeID) {
		if _, known := b.byNet[p]; known {
			return
		}
		i := b.rackFor(edges)
		b.byNet[p] = NodeID(1 + i)
		b.racks[i].prefixes = append(b.racks[i].prefixes, p)
		if f := family(p.Addr()); !slices.Contains(b.bits[f], p.Bits()) {
			b.bits[f] = append(b.bits[f], p.Bits())
			slices.SortFunc(b.bits[f], func(x, y int) int { return cmp.Compare(y, x) })
		}
	}
	for e := first; e < end; e++ {
		if b.gaps.cuts(b, e) {
			continue
		}
		for _, p := range b.g.Node(e).Prefixes {
			add(p, at[p])
		}
		b.rackFor([]graph.NodeID{e})
	}
	for h := range graph.NodeID(b.g.NumHosts()) {
		n, edges := b.g.Node(h), b.g.Edges(h)
		behind := slices.Clone(n.Prefixes)
		for _, a := range n.Addresses {
			behind = append(behind, netip.PrefixFrom(a, a.BitLen()))
		}
		for _, p := range behind {
			if !b.within(p, edges) {
				add(p, edges)
			}
		}
	}
	for i := range b.racks {
		slices.SortFunc(b.racks[i].prefixes, comparePrefixes)
	}
}

// within reports whether a prefix lies within one of the rack of some edge switches, and in no
// longer one.
func (b *viewBuilder) within(p netip.Prefix, edges []graph.NodeID) bool {
	for _, bits := range b.bits[family(p.Addr())] {
		if wider, err := p.Addr().Prefix(bits); err == nil && bits <= p.Bits() {
			if id, ok := b.byNet[wider]; ok {
				return int(id)-1 == b.rackFor(edges)
			}
		}
	}
	return false
}

// addPaths finds the paths to all racks, and which switches they bounce at.
func (b *viewBuilder) addPaths() error {
	seen := make(map[graph.NodeID]bool)
	for _, edges := range b.edges {
		p := b.gaps.between(b, edges)
		// To a rack that is cut off, or whose bouncing switches are not known yet, no switch can
		// be named: packets to it go as the switches' own routes have them.
		p.Direct = p.Direct || len(p.List) == 0
		if len(p.List) > MaxPaths {
			return fmt.Errorf("%d paths from %s to %s, must be up to %d", len(p.List), b.nodes[0].Name, b.nameOf(edges), MaxPaths)
		}
		b.found = append(b.found, p)
		for _, path := range p.List {
			if !seen[path.Bounce] {
				seen[path.Bounce] = true
				b.bounces = append(b.bounces, path.Bounce)
			}
			if _, ok := b.address(path.Bounce); !ok {
				return fmt.Errorf("switch %s has no address of the family of %v, so packets cannot bounce there", b.g.Node(path.Bounce).Name, b.nodes[0].Addr)
			}
		}
	}
	slices.Sort(b.bounces)
	return nil
}

// address returns the first address of a node in the family of bouncing addresses.
func (b *viewBuilder) address(id graph.NodeID) (netip.Addr, bool) {
	for _, a := range b.g.Node(id).Addresses {
		if a.Is4() == b.is4 {
			return a, true
		}
	}
	return netip.Addr{}, false
}

func (b *viewBuilder) nameOf(edges []graph.NodeID) string {
	names := make([]string, len(edges))
	for i, e := range edges {
		names[i] = b.g.Node(e).Name
	}
	return strings.Join(names, "+")
}

// addNodes makes nodes of the racks and the bouncing switches.
func (b *viewBuilder) addNodes() {
	for i, edges := range b.edges {
		n := Node{ID: NodeID(1 + i), Layer: LayerEdge, Name: b.nameOf(edges)}
		n.Addr, _ = b.address(edges[0])
		b.nodes = append(b.nodes, n)
		for _, e := range edges {
			if len(edges) == 1 || b.g.Node(e).Name == n.Name {
				for _, a := range b.g.Node(e).Addresses {
					b.byAddr[a] = n.ID
				}
			}
		}
	}
	for _, id := range b.bounces {
		n := Node{ID: NodeID(len(b.nodes)), Layer: LayerAgg, Name: b.g.Node(id).Name}
		if b.g.Node(id).Tier > 2 {
			n.Layer = LayerCore
		}
		n.Addr, _ = b.address(id)
		for _, a := range b.g.Node(id).Addresses {
			b.byAddr[a] = n.ID
		}
		b.nodes = append(b.nodes, n)
		sids := b.g.Node(id).SIDs
		b.sids = append(b.sids, bounceSIDs{sids.Decap4.Addr(), sids.Decap6.Addr()})
	}
	for _, n := range b.nodes {
		b.byName[n.Name] = n.ID
	}
}

// bounceID returns the node of a bouncing switch.
func (b *viewBuilder) bounceID(id graph.NodeID) NodeID {
	i, _ := slices.BinarySearch(b.bounces, id)
	return NodeID(1 + len(b.racks) + i)
}

// addLinks makes links of the host's own and of the ways up and down.
func (b *viewBuilder) addLinks() {
	for _, e := range b.own {
		edge := NodeID(1 + b.rackFor([]graph.NodeID{e}))
		i := slices.IndexFunc(b.g.Up(b.host), func(p graph.Port) bool { return p.Peer == e })
		b.addLink(0, edge)
		b.homes = append(b.homes, Uplink{Port: b.g.Link(b.g.Up(b.host)[i].Link).Ports[0], Edge: edge})
	}
	b.up = len(b.links)
	lists := make(map[string]*pathList)
	for i, p := range b.found {
		if !p.Direct {
			b.setList(i, p, lists)
		}
	}
	b.down = len(b.links)
	for i := range b.racks {
		r := &b.racks[i]
		if b.found[i].Direct {
			continue
		}
		r.first = LinkID(len(b.links))
		for _, bounce := range r.list.downs {
			b.addLink(NodeID(1+i), bounce)
		}
		_, r.rates = b.found[i].Live(nil)
		for _, rate := range r.rates {
			r.rate = slower(r.rate, rate)
		}
		if weigh(r.rates) == nil {
			r.rates = nil
		}
	}
}

func (b *viewBuilder) addLink(low, high NodeID) LinkID {
	l := Link{ID: LinkID(len(b.links)), A: low, B: high}
	b.links = append(b.links, l)
	b.byEnds[[2]NodeID{low, high}] = l.ID
	return l.ID
}

// setList gives a rack its paths. Racks with the same ones share the list.
func (b *viewBuilder) setList(rack int, found graph.Paths, known map[string]*pathList) {
	var key []byte
	for _, p := range found.List {
		key = binary.AppendVarint(key, int64(p.Bounce))
		key = binary.AppendVarint(key, int64(p.Edge()))
	}
	list := known[string(key)]
	if list == nil {
		list = b.listOf(found)
		list.number = 1 + len(known)
		known[string(key)] = list
	}
	b.racks[rack].list = list
}

func (b *viewBuilder) listOf(found graph.Paths) *pathList {
	l := &pathList{byBounce: make(map[NodeID]int)}
	for _, p := range found.List {
		for i, d := range p.Digits {
			if i == len(l.bases) {
				l.bases = append(l.bases, 1)
			}
			l.bases[i] = max(l.bases[i], d+1)
		}
	}
	if l.bases == nil {
		l.bases = []int{1} // an only way up
	}
	for _, p := range found.List {
		bounce := b.bounceID(p.Bounce)
		down := slices.Index(l.downs, bounce)
		if down < 0 {
			down = len(l.downs)
			l.downs = append(l.downs, bounce)
		}
		ends := viewEnds{p.Edge(), p.Bounce}
		up, ok := b.uplinks[ends]
		if !ok {
			up = b.addLink(NodeID(1+b.rackFor([]graph.NodeID{p.Edge()})), bounce)
			b.uplinks[ends] = up
		}
		if _, known := l.byBounce[bounce]; !known {
			l.byBounce[bounce] = len(l.paths)
		}
		code := 0
		for i, d := range p.Digits {
			code = code*l.bases[i] + d
		}
		l.paths = append(l.paths, viewPath{bounce, up, down, slices.Index(b.own, p.Edge())})
		l.codes = append(l.codes, code)
	}
	return l
}
