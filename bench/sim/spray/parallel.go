package spray

import "weft/topology"

// overParallel returns the ports of a leaf towards another one where several links lead to a
// spine: those that are live, to spines that have a live link on. By rate, the live ports to a
// spine share what it can send on. All links are as fast. If none is left it is all ports, as
// in PathsOrAll.
func (n *nextHops) overParallel(src, dst topology.NodeID) hopSet {
	from, to := n.leafLink(src), n.leafLink(dst)
	counts := make([]int, n.shape.ups)
	some := false
	for spine := 0; spine < n.shape.ups; spine += n.parallel {
		up, down := n.liveFrom(from, spine), n.liveFrom(to, spine)
		for _, port := range up {
			// In parts of a link that every number of live ones divides.
			counts[port] = common(n.parallel) * min(len(up), len(down)) / len(up)
			some = some || counts[port] > 0
		}
	}
	if !some {
		for port := range counts {
			counts[port] = 1
		}
	}
	return hopSet{upTo: 1, edge: spell(counts, n.by == byRate), agg: make([][]int, n.shape.ups)}
}

// leafLink is the first link up from a host's leaf.
func (n *nextHops) leafLink(host topology.NodeID) topology.LinkID {
	return n.shape.uplink(n.shape.edgeOf(host))
}

// liveFrom lists the ports of a leaf's live links to a spine, by the leaf's first link and the
// spine's first port.
func (n *nextHops) liveFrom(first topology.LinkID, spine int) (ports []int) {
	for port := spine; port < spine+n.parallel; port++ {
		if n.topo.Live(first + topology.LinkID(port)) {
			ports = append(ports, port)
		}
	}
	return ports
}

// common is the least number that 1 to n all divide.
func common(n int) int {
	m := 1
	for i := 2; i <= n; i++ {
		a, b := m, i
		for b != 0 {
			a, b = b, a%b
		}
		m *= i / a
	}
	return m
}

// Down is Switch's: a hash of the flow, as CONGA's spines have it (CONGA §3.3).
func (o *oblivious) Down(port int, p *Packet) int {
	if o.parallel < 2 {
		return port
	}
	spine := port - port%o.parallel
	to := o.leafLink(p.Dst)
	live := 0
	for i := spine; i < spine+o.parallel; i++ {
		if o.topo.Live(to + topology.LinkID(i)) {
			live++
		}
	}
	if live == 0 {
		return port
	}
	nth := int(HashAt(p.Hash^o.seed, o.shape.agg+topology.NodeID(spine)) % uint64(live))
	for i := spine; ; i++ {
		if o.topo.Live(to + topology.LinkID(i)) {
			if nth == 0 {
				return i
			}
			nth--
		}
	}
}
