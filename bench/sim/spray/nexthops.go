package spray

import (
	"math/bits"

	"weft/topology"
)

// nextHops is by which ports the switches on the way up reach other racks: a port is
// the digit of a path that is chosen there.
type nextHops struct {
	shape  shape
	topo   *topology.Topology
	by     weighing
	all    *hops   // of all pairs, where all links of a layer are live and alike
	pairs  []*hops // else, by the numbers of two racks; nil until needed
	quiver *topology.Quiver

	parallel int // see SwitchConfig
}

// weighing is how a switch tells ports apart before it looks at queues.
type weighing uint8

const (
	equal      weighing = iota // not at all
	byRate                     // a port comes as often as what its paths can carry
	byRateOnce                 // likewise, among the ports of one symmetric component
)

// hops are the next hops of a pair of racks.
type hops struct {
	components []hopSet // one, unless flows keep to symmetric components
}

// hopSet is those of one component.
type hopSet struct {
	upTo uint64  // weights of this one and those before
	edge []int   // ports of the source's edge switch, ascending
	agg  [][]int // by these, those of the aggregation switch there
}

func newNextHops(t *topology.Topology, name string) nextHops {
	n := nextHops{shape: shapeOf(t)}
	switch name {
	case switchWCMP, switchDrillAll:
		n.by = byRate
	case switchDrill, switchDrillFlow:
		n.by = byRateOnce
	}
	n.set(t)
	return n
}

func (n *nextHops) set(t *topology.Topology) {
	n.topo, n.quiver, n.all, n.pairs = t, nil, nil, nil
	if alike(t, &n.shape) {
		n.all = n.whole()
		return
	}
	n.pairs = make([]*hops, n.shape.racks*n.shape.racks)
}

// alike reports whether all links between switches are live and as fast as the
// others of their layer.
func alike(t *topology.Topology, s *shape) bool {
	for _, l := range t.Down() {
		if l >= s.edgeUp {
			return false
		}
	}
	for l := s.edgeUp; int(l) < t.NumLinks(); l++ {
		first := s.edgeUp
		if l >= s.aggUp {
			first = s.aggUp
		}
		if t.Rate(l) != t.Rate(first) {
			return false
		}
	}
	return true
}

func (n *nextHops) whole() *hops {
	c := hopSet{upTo: 1, edge: count(n.shape.ups), agg: make([][]int, n.shape.ups)}
	cores := count(n.shape.cores)
	for i := range c.agg {
		c.agg[i] = cores
	}
	return &hops{[]hopSet{c}}
}

// count is 0, 1, ... up to n of them.
func count(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// of returns by which ports a switch on the way up may send a packet.
func (n *nextHops) of(sw topology.NodeID, p *Packet) []int {
	h := n.all
	if h == nil {
		h = n.pair(p)
	}
	c := &h.components[0]
	if len(h.components) > 1 {
		c = h.component(p.Hash)
	}
	if n.shape.isEdge(sw) {
		return c.edge
	}
	digit := int(sw-n.shape.agg) % n.shape.ups
	if ports := c.agg[digit]; len(ports) > 0 {
		return ports
	}
	for i := range h.components { // who sent it here knew another fabric
		if ports := h.components[i].agg[digit]; len(ports) > 0 {
			return ports
		}
	}
	return nil
}

func (h *hops) component(hash uint64) *hopSet {
	at, _ := bits.Mul64(hash, h.components[len(h.components)-1].upTo)
	for i := range h.components {
		if at < h.components[i].upTo {
			return &h.components[i]
		}
	}
	return &h.components[0]
}

func (n *nextHops) pair(p *Packet) *hops {
	a, b := n.shape.rack(p.Src), n.shape.rack(p.Dst)
	at := &n.pairs[a*n.shape.racks+b]
	if *at == nil {
		*at = n.make(topology.NodeID(a*n.shape.perRack), topology.NodeID(b*n.shape.perRack))
	}
	return *at
}

func (n *nextHops) make(src, dst topology.NodeID) *hops {
	if n.parallel > 1 {
		return &hops{[]hopSet{n.overParallel(src, dst)}}
	}
	set := n.topo.PathsOrAll(src, dst)
	switch n.by {
	case equal:
		return &hops{[]hopSet{n.divide(set, set.Live, false)}}
	case byRate:
		return &hops{[]hopSet{n.divide(set, set.Weighted(), true)}}
	}
	if n.quiver == nil {
		n.quiver = n.topo.Quiver()
	}
	groups := n.quiver.Groups(src, dst)
	if len(groups) < 2 {
		return &hops{[]hopSet{n.divide(set, set.Weighted(), true)}}
	}
	h, upTo := &hops{}, uint64(0)
	for _, g := range groups {
		c := n.divide(set, g.Weighted(), true)
		upTo += uint64(g.Weight)
		c.upTo = upTo
		h.components = append(h.components, c)
	}
	return h
}

// divide divides paths, ascending, into ports: each once, or as often as its paths
// are more than others'.
func (n *nextHops) divide(set topology.PathSet, paths []int, repeat bool) hopSet {
	c := hopSet{upTo: 1, agg: make([][]int, n.shape.ups)}
	below := set.Count() / set.Bases[0]
	edge := make([]int, n.shape.ups)
	agg := make([][]int, n.shape.ups)
	for _, p := range paths {
		first := p / below
		edge[first]++
		if below > 1 {
			if agg[first] == nil {
				agg[first] = make([]int, n.shape.cores)
			}
			agg[first][p%below]++
		}
	}
	c.edge = spell(edge, repeat)
	for i := range agg {
		c.agg[i] = spell(agg[i], repeat)
	}
	return c
}

// spell lists what is counted, each once or, in lowest terms, as often.
func spell(counts []int, repeat bool) (list []int) {
	d := 0
	for _, c := range counts {
		for a := c; a != 0; {
			d, a = a, d%a
		}
	}
	for i, c := range counts {
		times := min(c, 1)
		if repeat && d > 0 {
			times = c / d
		}
		for range times {
			list = append(list, i)
		}
	}
	return list
}
