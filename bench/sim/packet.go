package sim

import (
	"weft/bench/sim/spray"
	"weft/flowcell"
)

// packetKind is what a packet is.
type packetKind uint8

const (
	data packetKind = iota
	ack
	open   // of Config.OpenLoop
	probe  // on its way to who answers
	answer // and back
	unused
)

// maxHops is how many ports a packet passes behind its host's own.
const maxHops = 5

// unchosen is a port of a route that a switch has yet to choose.
const unchosen = -1

// packet is one on its way, 64 bytes: what the ends need to know. Times are in ps, or where they
// have 32 bits in ns since sent.
type packet struct {
	route  [maxHops]int32 // the ports behind the host's own, hops of them
	since  uint32         // entered the first switch, then arrived; ack: SackedLen
	bytes  int32          // on the wire
	hops   uint8
	kind   packetKind
	again  bool   // sent before
	marked bool   // it has arrived with a congestion mark
	flow   uint32 // of data and ack; open: host it comes from; probe, answer: place in probing.out
	order  uint32 // of data: how many its flow had sent before; ack: Sacked less Cum
	number flowcell.Number
	mark   spray.Mark
	seq    int64 // ack: Cum
	sent   int64 // ack: of what it acknowledges, -1 if that was sent again
}

// freePacket is for packets of which nobody else keeps count.
func (s *simulation) freePacket(i uint32) {
	s.packets.at(i).kind = unused
	s.packets.free(i)
}

// discard ends a packet, whatever it is.
func (s *simulation) discard(i uint32) {
	p := s.packets.at(i)
	f := p.flow
	kind := p.kind
	s.freePacket(i)
	switch kind {
	case data, ack:
		s.leave(f, s.flows.at(f))
	case probe, answer:
		s.endProbe(f)
	}
}

// set begins a packet of which no more is known. It does not set the route, nor what not all kinds
// have. A literal would be built on the stack and copied: see wheel.place.
func (p *packet) set(kind packetKind, bytes int32, flow uint32) {
	p.kind, p.again, p.marked = kind, false, false
	p.bytes, p.flow, p.since = bytes, flow, 0
	p.number, p.mark = 0, spray.Mark{}
}

// start is the way behind a host's own port, and what comes at its end.
func (p *packet) start() (way, uint32) {
	if p.route[0] == unchosen {
		return way{}, undecided
	}
	return wayBy(p.route[:p.hops]), arrived
}

// dst is the host to which a packet goes.
func (p *packet) dst() int32 { return p.route[p.hops-1] >> 1 }
