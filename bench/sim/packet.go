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

// Flags of packets.
const (
	capable = 1 << iota // of congestion marks
	marked
	again // sent before
	gone  // with a link that has failed: it will not arrive
)

// maxHops is how many ports a packet passes behind its host's own.
const maxHops = 5

// packet is one on its way, 64 bytes: what every hop looks at and what the ends do.
// Times are in ps, or where they have 32 bits in ns since sent.
type packet struct {
	// route is the ports behind the host's own, hops of them; hop comes behind the
	// one that the packet is in. What a switch has yet to choose is undecided.
	route     [maxHops]int32
	since     uint32 // entered the first switch, then arrived; ack: SackedLen
	bytes     int32  // on the wire
	hop, hops uint8
	kind      packetKind
	flags     uint8
	flow      uint32 // of data and ack; open: host it comes from; probe, answer: place in probing.out
	order     uint32 // of data: how many its flow had sent before; ack: Sacked less Cum
	number    flowcell.Number
	mark      spray.Mark
	seq       int64 // ack: Cum
	sent      int64 // ack: of what it acknowledges, -1 if that was sent again
}

// atHost is hop of what a resequencer holds.
const atHost = 255

// newPacket returns the number of a packet whose fields the caller sets, all.
// Pointers to packets are no good afterwards.
func (s *simulation) newPacket() uint32 {
	if n := len(s.unusedPackets); n > 0 {
		i := s.unusedPackets[n-1]
		s.unusedPackets = s.unusedPackets[:n-1]
		return i
	}
	s.packets = append(s.packets, packet{})
	return uint32(len(s.packets) - 1)
}

// freePacket is for packets of which nobody else keeps count.
func (s *simulation) freePacket(i uint32) {
	s.packets[i].kind = unused
	s.unusedPackets = append(s.unusedPackets, i)
}

// discard ends a packet, whatever it is.
func (s *simulation) discard(i uint32) {
	p := &s.packets[i]
	f := p.flow
	kind := p.kind
	s.freePacket(i)
	switch kind {
	case data, ack:
		s.leave(f, s.flows[f])
	case probe, answer:
		s.endProbe(f)
	}
}

// dst is the host to which a packet goes.
func (p *packet) dst() int32 { return p.route[p.hops-1] >> 1 }
