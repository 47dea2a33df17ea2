package hedera

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"slices"

	"weft/topology"
	"weft/topology/graph"
)

// Data is the Fabric of a graph. A path is all ways up to a bouncing switch and down from
// it, of which switches choose by their own ECMP: each switch divides what it forwards
// equally.
type Data struct {
	g        *graph.Graph
	down     graph.Down
	capacity []float64
	layout   Layout
	most     int // paths of any pair
	routes   map[pathKey][]Use
	pairs    map[Pair]graph.Paths // by edge switches
}

type pathKey struct {
	Pair
	path int32
}

// maxKept bounds the pairs and routes that are kept. Above, all are forgotten.
const maxKept = 1 << 16

// NewData returns the fabric of a graph. A nil down means that no link is down.
func NewData(g *graph.Graph, down graph.Down) *Data {
	if down == nil {
		down = func(graph.LinkID) bool { return false }
	}
	d := &Data{g: g, down: down, capacity: make([]float64, 2*g.NumLinks()), routes: make(map[pathKey][]Use), pairs: make(map[Pair]graph.Paths)}
	for l := range graph.LinkID(g.NumLinks()) {
		rate := g.Link(l).Rate
		if rate == 0 {
			rate = unknownRate
		}
		if down(l) {
			rate = 0
		}
		d.capacity[2*l], d.capacity[2*l+1] = rate, rate
	}
	d.lay()
	return d
}

// lay finds the racks: hosts with the same first edge switch. All are one pod.
func (d *Data) lay() {
	racks := make(map[graph.NodeID]int)
	var pod [][]topology.NodeID
	first, last := topology.NodeID(-1), topology.NodeID(-1)
	for h := range topology.NodeID(d.g.NumHosts()) {
		edges := d.g.Edges(graph.NodeID(h))
		if len(edges) == 0 {
			edges = []graph.NodeID{-1}
		}
		r, ok := racks[edges[0]]
		if !ok {
			r = len(pod)
			racks[edges[0]] = r
			pod = append(pod, nil)
		}
		pod[r] = append(pod[r], h)
		if first < 0 {
			first = h
		}
		last = h
	}
	d.most = 1
	if first >= 0 {
		for r := range pod { // racks may differ
			d.most = max(d.most, len(d.paths(first, pod[r][0]).List), len(d.paths(pod[r][0], last).List))
		}
	}
	d.layout = Layout{Pods: [][][]topology.NodeID{pod}, Choices: d.most, Stride: 1}
}

func (d *Data) paths(src, dst topology.NodeID) graph.Paths {
	a, b := d.g.Edges(graph.NodeID(src)), d.g.Edges(graph.NodeID(dst))
	if len(a) != 1 || len(b) != 1 {
		return d.g.Between(a, b)
	}
	key := Pair{topology.NodeID(a[0]), topology.NodeID(b[0])}
	p, ok := d.pairs[key]
	if !ok {
		if len(d.pairs) >= maxKept {
			clear(d.pairs)
		}
		p = d.g.Between(a, b)
		d.pairs[key] = p
	}
	return p
}

// Hosts is Network's.
func (d *Data) Hosts() int { return d.g.NumHosts() }

// Capacity is Network's.
func (d *Data) Capacity() []float64 { return d.capacity }

// HostRate is Network's.
func (d *Data) HostRate() float64 { return d.HostLink(0) }

// HostLink is Fabric's: of all of a host's uplinks.
func (d *Data) HostLink(h topology.NodeID) (rate float64) {
	for _, p := range d.g.Up(graph.NodeID(h)) {
		rate += d.g.Link(p.Link).Rate
	}
	if rate == 0 {
		return unknownRate
	}
	return rate
}

// Paths is Network's.
func (d *Data) Paths(src, dst topology.NodeID) int { return max(1, len(d.paths(src, dst).List)) }

// AppendRoute is Network's.
func (d *Data) AppendRoute(list []Use, src, dst topology.NodeID, path int) []Use {
	key := pathKey{Pair{src, dst}, int32(path)}
	route, ok := d.routes[key]
	if !ok {
		if len(d.routes) >= maxKept {
			clear(d.routes)
		}
		route = d.route(src, dst, path)
		d.routes[key] = route
	}
	return append(list, route...)
}

// route finds the ways of a path.
func (d *Data) route(src, dst topology.NodeID, path int) []Use {
	p := d.paths(src, dst)
	if path < 0 || path >= len(p.List) {
		return nil
	}
	way, ends := p.List[path], d.g.Edges(graph.NodeID(dst))
	up := d.divide(way.Edge(), d.g.Up, 0, d.leads(d.g.Down, way.Bounce))
	return append(up, d.divide(way.Bounce, d.g.Down, 1, d.leads(d.g.Up, ends...))...)
}

// leads returns the switches from which ways lead to others: those that are reached from
// them by ports in the other direction.
func (d *Data) leads(ports func(graph.NodeID) []graph.Port, from ...graph.NodeID) map[graph.NodeID]bool {
	seen := make(map[graph.NodeID]bool)
	for list := slices.Clone(from); len(list) > 0; {
		n := list[len(list)-1]
		list = list[:len(list)-1]
		if seen[n] || d.g.Node(n).Tier == 0 {
			continue
		}
		seen[n] = true
		for _, p := range ports(n) {
			if !d.down(p.Link) {
				list = append(list, p.Peer)
			}
		}
	}
	// The ends themselves lead nowhere on.
	for _, n := range from {
		seen[n] = true
	}
	return seen
}

// divide gives each port on the ways from a switch its share, tier by tier, until no port
// leads on. side says which end of a link a port is.
func (d *Data) divide(from graph.NodeID, ports func(graph.NodeID) []graph.Port, side int32, leads map[graph.NodeID]bool) (list []Use) {
	part := map[graph.NodeID]int32{from: Whole}
	for level := []graph.NodeID{from}; len(level) > 0; {
		var next []graph.NodeID
		for _, n := range level {
			var on []graph.Port
			for _, p := range ports(n) {
				if !d.down(p.Link) && leads[p.Peer] {
					on = append(on, p)
				}
			}
			for _, p := range on {
				share := part[n] / int32(len(on))
				list = append(list, Use{2*int32(p.Link) + side, share})
				if _, seen := part[p.Peer]; !seen {
					next = append(next, p.Peer)
				}
				part[p.Peer] += share
			}
		}
		level = next
	}
	return list
}

// Layout is Space's.
func (d *Data) Layout() Layout { return d.layout }

// PathBy is Space's. Pairs may have fewer paths than others.
func (d *Data) PathBy(src, dst topology.NodeID, choice int) int {
	return choice % d.Paths(src, dst)
}

// ChoiceOf is Space's.
func (d *Data) ChoiceOf(_, _ topology.NodeID, path int) int { return path }

// Host is Fabric's.
func (d *Data) Host(a netip.Addr) (topology.NodeID, bool) {
	id, ok := d.g.Behind(a.Unmap())
	if !ok || int(id) >= d.g.NumHosts() {
		return 0, false
	}
	return topology.NodeID(id), true
}

// Known is Fabric's.
func (d *Data) Known(node netip.Addr) bool {
	id, ok := d.g.ByAddr(node)
	return ok && d.g.Node(id).Tier <= 1
}

// Relays is Fabric's: switches of graphs are not told of paths.
func (d *Data) Relays(Assignment) []netip.Addr { return nil }

// Owns is Fabric's.
func (d *Data) Owns(node netip.Addr, host topology.NodeID) bool {
	id, ok := d.g.ByAddr(node)
	return ok && (id == graph.NodeID(host) || slices.Contains(d.g.Edges(graph.NodeID(host)), id))
}

// Live is Fabric's.
func (d *Data) Live(src, dst topology.NodeID, path int) bool {
	p := d.paths(src, dst)
	if path < 0 || path >= len(p.List) {
		return false
	}
	live, _ := p.Live(d.down)
	_, ok := slices.BinarySearch(live, path)
	return ok
}

// Via is Fabric's.
func (d *Data) Via(src, dst topology.NodeID, path int, six bool) (netip.Addr, bool) {
	p := d.paths(src, dst)
	if path < 0 || path >= len(p.List) {
		return netip.Addr{}, false
	}
	for _, a := range d.g.Node(p.List[path].Bounce).Addresses {
		if a.Is6() == six {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// Fork is Fabric's: what is kept of pairs and routes is not shared.
func (d *Data) Fork() Fabric {
	f := *d
	f.routes, f.pairs = make(map[pathKey][]Use), make(map[Pair]graph.Paths)
	return &f
}

// Fingerprint is Fabric's.
func (d *Data) Fingerprint() uint64 { return GraphFingerprint(d.g) }

// GraphFingerprint tells graphs apart by their nodes and cables.
func GraphFingerprint(g *graph.Graph) uint64 {
	h := fnv.New64a()
	for n := range graph.NodeID(g.NumNodes()) {
		h.Write([]byte(g.Node(n).Name))
		h.Write([]byte{0})
	}
	for l := range graph.LinkID(g.NumLinks()) {
		low, high := g.Ends(l)
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(low)<<32|uint64(high)))
	}
	return h.Sum64()
}
