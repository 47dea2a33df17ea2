package sim

import (
	"errors"
	"fmt"

	"weft/bench/sim/spray"
	"weft/topology"
	"weft/topology/graph"
)

// graphFabric forwards packets in a fabric that is data. Such a packet is at a switch that
// chooses at every hop, and has in place of a route what follows.
type graphFabric struct {
	*graph.Graph
	seed  uint64
	next  map[towards][]int32 // ports, in the order of the node's
	pairs map[[2]int32]*graphPair
	views map[topology.NodeID]*topology.Topology
}

// Entries of a packet's route in a graphFabric. Those that are not here are unchosen.
const (
	lastPort  = 0 // that it has left, once it has left its host's
	bouncing  = 2 // the switch that it is still to bounce at, -1: none
	firstPort = 3 // its host's
	lastHop   = 4 // down(dst), as in all packets; not a port here
)

// towards is a node where a packet is and the switch it is to bounce at, or the host.
type towards struct{ at, to graph.NodeID }

// graphPair is the paths between two hosts.
type graphPair struct {
	graph.Paths
	direct graph.NodeID // an edge switch that both have
}

func newGraphFabric(g *graph.Graph, seed uint64) *graphFabric {
	return &graphFabric{Graph: g, seed: seed, next: make(map[towards][]int32),
		pairs: make(map[[2]int32]*graphPair), views: make(map[topology.NodeID]*topology.Topology)}
}

func (c *Config) numHosts() int {
	if c.Graph != nil {
		return c.Graph.NumHosts()
	}
	return c.Topology.NumHosts()
}

// checkGraph says what of a Config does not go with its Graph.
func (c *Config) checkGraph() error {
	g := c.Graph
	switch {
	case g.NumHosts() < 2:
		return fmt.Errorf("sim: Graph has %d hosts; want 2 or more", g.NumHosts())
	case c.Known != nil:
		return errors.New("sim: Known is given with a Graph; leave it out")
	case c.Parallel > 1:
		return errors.New("sim: Parallel is given with a Graph, which has links of its own; leave it out")
	case len(c.Failures) > 0:
		return errors.New("sim: Failures are given with a Graph; leave their links out of the Graph")
	}
	for _, name := range spray.SwitchNames() {
		if name == c.Policy {
			return fmt.Errorf("sim: Policy is %s, with a Graph; want a policy of hosts", name)
		}
	}
	for l := range graph.LinkID(g.NumLinks()) {
		if link := g.Link(l); link.Rate <= 0 {
			return fmt.Errorf("sim: Graph: the link %s to %s has no rate; give it one", link.Ends[0], link.Ends[1])
		}
	}
	for h := range graph.NodeID(g.NumHosts()) {
		n := g.Node(h)
		if len(n.Addresses) == 0 {
			return fmt.Errorf("sim: Graph: host %s has no address; give it one", n.Name)
		}
		if len(g.Up(h)) == 0 {
			return fmt.Errorf("sim: Graph: host %s has no link; give it one", n.Name)
		}
		if _, err := topology.FromGraph(g, n.Addresses[0]); err != nil {
			return fmt.Errorf("sim: Graph: %w", err)
		}
	}
	return nil
}

// pathsOfHosts is what spray.Hosts asks, nil if there is no graph.
func (f *graphFabric) pathsOfHosts() func(src, dst topology.NodeID) topology.PathSet {
	if f == nil {
		return nil
	}
	return func(src, dst topology.NodeID) topology.PathSet {
		t := f.views[src]
		if t == nil {
			var err error
			if t, err = topology.FromGraph(f.Graph, f.Node(graph.NodeID(src)).Addresses[0]); err != nil {
				panic(err) // checkGraph has made it before
			}
			f.views[src] = t
		}
		return t.PathsTo(0, f.Node(graph.NodeID(dst)).Addresses[0]).OrAll()
	}
}

// pair returns the paths between two hosts. The numbers of a host's view are theirs.
func (f *graphFabric) pair(src, dst int32) *graphPair {
	p := f.pairs[[2]int32{src, dst}]
	if p == nil {
		p = &graphPair{Paths: f.Paths(graph.NodeID(src), graph.NodeID(dst)), direct: -1}
		for _, a := range f.Edges(graph.NodeID(src)) {
			for _, b := range f.Edges(graph.NodeID(dst)) {
				if a == b && p.direct < 0 {
					p.direct = a
				}
			}
		}
		f.pairs[[2]int32{src, dst}] = p
	}
	return p
}

// joins reports whether packets can go from one host to another.
func (f *graphFabric) joins(src, dst int32) bool {
	p := f.pair(src, dst)
	return p.Direct || len(p.List) > 0
}

func (f *graphFabric) noPath(src, dst int32) error {
	return fmt.Errorf("sim: Graph: no path leads from %s to %s; add links, or have them send to others", f.Node(graph.NodeID(src)).Name, f.Node(graph.NodeID(dst)).Name)
}

// ports returns those by which a packet at a node may go towards a switch above it or a host.
func (f *graphFabric) ports(t towards) []int32 {
	list, known := f.next[t]
	if known {
		return list
	}
	if int(t.to) < f.NumHosts() {
		edges := f.Edges(t.to)
		for _, p := range f.Down(t.at) {
			leads := p.Peer == t.to
			for _, e := range edges {
				leads = leads || f.leadsUp(e, p.Peer)
			}
			if leads {
				list = append(list, down(int32(p.Link)))
			}
		}
	} else {
		for _, p := range f.Up(t.at) {
			if f.leadsUp(p.Peer, t.to) {
				list = append(list, up(int32(p.Link)))
			}
		}
	}
	f.next[t] = list
	return list
}

// leadsUp reports whether a switch is another one or is reached from it by going up.
func (f *graphFabric) leadsUp(from, to graph.NodeID) bool {
	if from == to {
		return true
	}
	if f.Node(from).Tier >= f.Node(to).Tier {
		return false
	}
	for _, p := range f.Up(from) {
		if f.leadsUp(p.Peer, to) {
			return true
		}
	}
	return false
}

// lead sets how a packet goes from a host to another by a path of theirs. Only a Graph needs the
// flow's hash.
func (s *simulation) lead(p *packet, src, dst int32, path int, hash *uint64) {
	if s.graph == nil {
		p.hops = s.fabric.route(&p.route, src, dst, path)
		return
	}
	f := s.graph
	pair := f.pair(src, dst)
	edge, bounce := pair.direct, graph.NodeID(-1)
	if !pair.Direct {
		edge, bounce = pair.List[path].Edge(), pair.List[path].Bounce
	}
	p.hops = maxHops
	p.route = [maxHops]int32{unchosen, unchosen, int32(bounce), 0, down(dst)}
	var links []int32
	if own := f.Up(graph.NodeID(src)); len(own) == 1 {
		p.route[firstPort] = up(int32(own[0].Link))
		return
	}
	for _, port := range f.Up(graph.NodeID(src)) {
		if port.Peer == edge {
			links = append(links, up(int32(port.Link)))
		}
	}
	p.route[firstPort] = links[spray.HashAt(*hash^f.seed, topology.NodeID(src))%uint64(len(links))]
}

// first is the port of its host that a packet leaves by.
func (s *simulation) first(p *packet, host int32) int32 {
	if s.graph != nil {
		return p.route[firstPort]
	}
	return up(host)
}

// uplink is the first port of a host.
func (s *simulation) uplink(host int32) int32 {
	if s.graph != nil {
		return up(int32(s.graph.Up(graph.NodeID(host))[0].Link))
	}
	return up(host)
}

// forward has a switch of a Graph send a packet on.
func (s *simulation) forward(i, load uint32) {
	f, p := s.graph, s.packets.at(i)
	last := p.route[lastPort]
	if last == unchosen {
		last = p.route[firstPort]
	}
	at, high := f.Ends(graph.LinkID(last >> 1))
	if last&1 == 0 {
		at = high
	}
	to := graph.NodeID(p.route[bouncing])
	if to == at {
		p.route[bouncing], to = -1, -1
	}
	_, dst := s.show(p)
	if to < 0 {
		to = graph.NodeID(dst)
	}
	list := f.ports(towards{at, to})
	if len(list) == 0 {
		s.fails(fmt.Errorf("sim: no way leads from %s to %s", f.Node(at).Name, f.Node(to).Name))
		return
	}
	port := list[0]
	if len(list) > 1 {
		port = list[spray.HashAt(s.looked.Hash^f.seed, topology.NodeID(at))%uint64(len(list))]
	}
	p.route[lastPort] = port
	if low, _ := f.Ends(graph.LinkID(port >> 1)); low != graph.NodeID(dst) {
		load |= undecided
	}
	s.transmit(port, i, load-onePassed, way{}) // however many hops
}

// graphPlace is where a port of a Graph is. Ports above the aggregation switches are AggUp and
// CoreDown, however many tiers there are.
func graphPlace(g *graph.Graph, port int) int {
	low, _ := g.Ends(graph.LinkID(port / 2))
	isUp := port%2 == 0
	switch tier := g.Node(low).Tier; {
	case tier == 0 && isUp:
		return HostNIC
	case tier == 0:
		return EdgeDown
	case tier == 1 && isUp:
		return EdgeUp
	case tier == 1:
		return AggDown
	case isUp:
		return AggUp
	}
	return CoreDown
}
