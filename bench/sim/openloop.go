package sim

import (
	"fmt"
	"math"
	"math/rand/v2"

	"weft/bench/sim/spray"
	"weft/flowcell"
	"weft/topology"
)

// openLoop sends packets that nobody acknowledges.
type openLoop struct {
	rng    *rand.Rand
	gap    []float64 // ps between a host's packets: a slot's, or the mean
	orders []order   // by sender
	pairs  []*spray.Flow
	own    []spray.Flow // to where Config.OpenLoop.To says
}

// maxPairs bounds what hosts keep of each other where anybody sends to everybody.
const maxPairs = 1 << 20

func (s *simulation) newOpenLoop(seed uint64) error {
	c := s.config.OpenLoop
	if c == nil {
		return nil
	}
	hosts := len(s.delivered)
	o := &openLoop{
		rng:    rand.New(rand.NewPCG(seed, 0x6f70656e)),
		orders: make([]order, hosts),
		gap:    make([]float64, hosts),
	}
	for h := range hosts {
		o.gap[h] = float64(int64(c.PacketBytes) * s.class[s.ports[s.uplink(int32(h))].class].byteTime)
		if !c.Slotted {
			o.gap[h] /= c.Load
		}
	}
	s.open = o
	if s.hosts == nil {
		return nil
	}
	if c.To != nil {
		o.own = make([]spray.Flow, hosts)
		for h := range hosts {
			s.openPair(&o.own[h], h, int(c.To[h]))
		}
		return nil
	}
	if hosts*hosts > maxPairs {
		return fmt.Errorf("sim: OpenLoop.To: hosts with policy %s cannot each send to %d others; say to whom, or let switches choose", s.config.Policy, hosts)
	}
	o.pairs = make([]*spray.Flow, hosts*hosts)
	return nil
}

// openPair begins a pair's flow for choosing paths.
func (s *simulation) openPair(f *spray.Flow, src, dst int) {
	if s.graph != nil && src != dst && !s.graph.joins(int32(src), int32(dst)) {
		s.fails(s.graph.noPath(int32(src), int32(dst)))
		return
	}
	s.hosts.Open(f, topology.NodeID(src), topology.NodeID(dst), &flowcell.FiveTuple{
		Src: s.addresses[src], Dst: s.addresses[dst], SrcPort: 1, DstPort: 1, Proto: flowcell.ProtoTCP,
	})
}

func (s *simulation) beginOpenLoop() {
	if s.open == nil || s.config.OpenLoop.Load == 0 {
		return
	}
	for h := range s.delivered {
		if to := s.config.OpenLoop.To; to != nil && int(to[h]) == h {
			continue // sends nothing
		}
		s.wheel.push(event{at: s.afterGap(h), what: uint32(h), load: emission})
	}
}

// afterGap is when a host sends its next packet.
func (s *simulation) afterGap(h int) int64 {
	o, c := s.open, s.config.OpenLoop
	if !c.Slotted {
		return s.now + int64(o.rng.ExpFloat64()*o.gap[h])
	}
	slots := 1.
	if c.Load < 1 {
		slots = math.Floor(math.Log(1-o.rng.Float64())/math.Log(1-c.Load)) + 1
	}
	return s.now + int64(o.gap[h])*int64(slots)
}

// emit sends a packet from a host.
func (s *simulation) emit(host uint32) {
	o, c := s.open, s.config.OpenLoop
	h := int(host)
	s.wheel.push(event{at: s.afterGap(h), what: host, load: emission})
	dst := 0
	if c.To != nil {
		dst = int(c.To[h])
	} else {
		dst = s.anyElsewhere(h)
	}
	n := s.packets.take()
	p := s.packets.at(n)
	p.set(open, int32(c.PacketBytes), host)
	p.order, p.sent = o.orders[h].sent, s.now
	o.orders[h].sent++
	s.dataPackets++
	if s.hosts == nil {
		s.fabric.unrouted(p, int32(h), int32(dst))
	} else {
		payload := c.PacketBytes - s.tcp.HeaderBytes
		path, _ := s.hosts.Data(s.pairFlow(h, dst), p.order*uint32(payload), payload, c.PacketBytes, s.clock())
		hash := openHash(s.hashSeed, int32(h), int32(dst))
		s.lead(p, int32(h), int32(dst), path, &hash)
	}
	s.leaveHost(n, p, int32(h), 0)
}

// pairFlow returns what is kept of a pair.
func (s *simulation) pairFlow(src, dst int) *spray.Flow {
	o := s.open
	if o.own != nil {
		return &o.own[src]
	}
	f := &o.pairs[src*len(s.delivered)+dst]
	if *f == nil {
		*f = new(spray.Flow)
		s.openPair(*f, src, dst)
	}
	return *f
}

// anyElsewhere returns a host of another rack.
func (s *simulation) anyElsewhere(h int) int {
	rack := int(s.fabric.rackHosts)
	n := s.open.rng.IntN(len(s.delivered) - rack)
	if first := h / rack * rack; n >= first {
		n += rack
	}
	return n
}

func (s *simulation) receiveOpen(n uint32, p *packet) {
	s.arrived(p, &s.open.orders[p.flow])
	s.delivered[p.dst()] += int64(p.bytes) - int64(s.tcp.HeaderBytes)
	s.freePacket(n)
}
