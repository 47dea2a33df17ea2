package sim

import (
	"weft/topology"
)

// unrouted sets what is known of a route where switches choose: how many hops it
// has, and the last one.
func (f *fabric) unrouted(p *packet, src, dst int32) {
	p.hops = f.hops(src, dst)
	for i := range p.hops {
		p.route[i] = unchosen
	}
	p.route[p.hops-1] = down(dst)
}

// choose has a switch choose the next port of a packet, and sets what follows from
// it.
func (s *simulation) choose(i, load uint32) {
	load &^= kinds
	if s.graph != nil {
		s.forward(i, load)
		return
	}
	f := &s.fabric
	p := s.packets.at(i)
	src, dst := s.show(p)
	from := f.rack[src]
	sw, in, agg := f.edge[from], up(src), int32(0)
	second := passed(load) == 2
	if second {
		agg = p.route[0]>>1 - f.edgeUp[from]
		sw, in = f.agg[f.pod[from]]+agg, p.route[0]
	}
	n := int32(s.switches.Up(topology.NodeID(sw), in, &s.looked, s.clock()))
	p.mark = s.looked.Mark
	port := up(f.edgeUp[from] + max(n, 0))
	if second {
		port = up(f.coreUp[f.pod[from]] + agg*f.cores + max(n, 0))
	}
	if n < 0 { // no way from here; counted at the first port
		s.drop(port, i)
		return
	}
	switch {
	case second:
		f.route(&p.route, src, dst, int(agg*f.cores+n))
		s.transmit(port, i, load, wayBy(p.route[2:]))
	case p.hops == 3:
		f.route(&p.route, src, dst, int(n))
		if s.config.Parallel > 1 {
			p.route[1] = down(f.edgeUp[f.rack[dst]] + int32(s.switches.Down(int(n), &s.looked)))
		}
		s.transmit(port, i, load, wayBy(p.route[1:3]))
	default:
		p.route[0] = port
		s.transmit(port, i, load|undecided, way{})
	}
}

// show makes looked what switches see of a packet, and returns its ends.
func (s *simulation) show(p *packet) (src, dst int32) {
	l := &s.looked
	dst = p.dst()
	switch p.kind {
	case ack:
		f := s.flows.at(p.flow)
		src, l.Hash = f.dst, f.back
	case open:
		src = int32(p.flow)
		l.Hash = openHash(s.hashSeed, src, dst)
	default:
		f := s.flows.at(p.flow)
		src, l.Hash = f.src, f.hash
	}
	l.Src, l.Dst = topology.NodeID(src), topology.NodeID(dst)
	l.Bytes, l.Mark = p.bytes, p.mark
	l.Numbered, l.Number = p.kind == data && s.unit.Numbers(), p.number
	return src, dst
}

// openHash is the hash of the flow of a pair that sends open loop.
func openHash(seed uint64, src, dst int32) uint64 {
	h := (uint64(src)<<32 | uint64(dst)) ^ seed
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>32
}

// drop counts a packet as dropped at a port.
func (s *simulation) drop(port int32, n uint32) {
	t := &s.ports[port]
	t.drops++
	s.class[t.class].drops++
	s.discard(n)
}

// watch lets a switch's port look at what it sends.
func (s *simulation) watch(port int32, p *packet, backlog int64, c *class) {
	if c.place == HostNIC {
		return
	}
	switch {
	case p.kind == probe:
		s.meter(p, backlog, c)
	case s.meters != nil:
		s.meters.Pass(port, int(p.bytes), &p.mark, s.clock())
	case s.switches != nil:
		s.show(p)
		s.switches.Pass(port, &s.looked, s.clock())
		p.mark = s.looked.Mark
	}
}
