package sim

import (
	"math"
	"time"

	"weft/bench/sim/spray"
	"weft/bench/sim/tcp"
	"weft/flowcell"
	"weft/internal/fate"
	"weft/resequencer"
)

// sendData sends a segment from a flow's source.
func (s *simulation) sendData(i uint32, f *flow, g tcp.Segment, now time.Duration) {
	n := s.packets.take()
	p := s.packets.at(n)
	p.set(data, g.Len+int32(s.tcp.HeaderBytes), i)
	p.order, p.again = f.order.sent, g.Retransmit
	p.seq, p.sent = g.Seq, s.now
	if g.Retransmit {
		s.retransmits++
	}
	f.order.sent++
	f.underWay++
	s.dataPackets++
	if s.hosts != nil {
		var path int
		path, p.number = s.hosts.Data(&f.path, uint32(f.base+g.Seq), int(g.Len), int(p.bytes), now)
		s.lead(p, f.src, f.dst, path, &f.hash)
		if s.meters != nil {
			p.mark = s.hosts.DataMark(&f.path, path, now)
		}
	} else {
		p.number = f.numbers.Next(s.unit, uint32(f.base+g.Seq), int(g.Len), now)
		s.fabric.unrouted(p, f.src, f.dst)
	}
	s.leaveHost(n, p, f.src, s.capable)
}

// leaveHost puts a packet into a host's own queue.
func (s *simulation) leaveHost(n uint32, p *packet, host int32, flags uint32) {
	first := s.first(p, host)
	rest, then := p.start()
	if s.transmit(first, n, loadOf(p.bytes, flags|then), rest) {
		p.since = sinceSent(p, s.ports[first].busy+s.delay)
	}
}

// sinceSent is how long after p was sent a time is, in ns.
func sinceSent(p *packet, at int64) uint32 {
	return uint32(min((at-p.sent)/1000, math.MaxUint32))
}

// receive takes a packet in at the end of its way.
func (s *simulation) receive(n, load uint32) {
	if load&gone != 0 {
		s.discard(n)
		return
	}
	p := s.packets.at(n)
	p.marked = load&marked != 0
	switch p.kind {
	case data:
		s.receiveData(n, p)
	case ack:
		s.receiveAck(n, p)
	case open:
		s.receiveOpen(n, p)
	case probe:
		s.answer(n, p)
	case answer:
		s.answered(n, p)
	}
}

// receiveData is the lower half of a receiver: below TCP.
func (s *simulation) receiveData(n uint32, p *packet) {
	f := s.flows.at(p.flow)
	s.arrived(p, &f.order)
	if s.meters != nil {
		s.hosts.Received(&f.path, p.mark, false, s.clock())
	}
	if s.resequencer == nil {
		s.accept(n, p)
		return
	}
	p.since = sinceSent(p, s.now)
	g := &s.segment
	if !f.held.Known() {
		g.Flow = f.tuple
	}
	g.Length = int(p.bytes)
	g.Seq = uint32(f.base + p.seq)
	g.Payload = p.bytes - int32(s.tcp.HeaderBytes)
	g.ID = uint16(p.number)
	g.Flags = flowcell.FlagACK
	s.inOrder = s.resequencer.PushKept(&f.held, g, n, s.clock(), s.inOrder[:0])
	if len(s.inOrder) == 0 {
		s.awaitExpiry()
		return
	}
	s.acceptAll()
}

// acceptAll hands to TCP what the resequencer has released.
func (s *simulation) acceptAll() {
	sum := uint32(0)
	for _, n := range s.inOrder { // as in lookAhead
		sum += s.packets.at(n).since
	}
	s.sum = int64(sum)
	for _, n := range s.inOrder {
		s.accept(n, s.packets.at(n))
	}
}

// arrived measures a packet of data, or one of open loop.
func (s *simulation) arrived(p *packet, o *order) {
	ns := (s.now - s.delay - p.sent) / 1000
	s.latency.add(max(ns-int64(p.since), 0))
	s.outOfOrder[o.arrived(p.order)]++
	if s.config.OnArrival != nil {
		s.config.OnArrival(s.clock(), p.flow, p.order)
	}
}

// awaitExpiry has expire called when the resequencer has something to do.
func (s *simulation) awaitExpiry() {
	if at, ok := s.resequencer.NextDeadline(); ok && ps(at) < s.expiryAt {
		s.expiryAt = max(ps(at), s.now)
		s.wheel.push(event{at: s.expiryAt, load: expiry})
	}
}

func (s *simulation) expire() {
	if s.now != s.expiryAt {
		return // another event took its place
	}
	s.expiryAt = never
	s.inOrder = s.resequencer.Expire(s.clock(), s.inOrder[:0])
	s.acceptAll()
	s.awaitExpiry()
}

// accept is the upper half of a receiver: TCP takes a packet and acknowledges it,
// with the very same packet turned round.
func (s *simulation) accept(n uint32, p *packet) {
	f := s.flows.at(p.flow)
	if s.resequencer != nil {
		s.resequencing.add((s.now-p.sent)/1000 - int64(p.since))
	}
	a, bytes := f.receiver.Data(p.seq, p.bytes-int32(s.tcp.HeaderBytes), p.marked)
	now := s.clock()
	if f.whole != nil {
		bytes = s.assemble(n, p, f)
	} else if f.receiver.Done() && f.end == 0 {
		f.end = now
	}
	s.delivered[f.dst] += bytes
	if s.tcp.AckEvery > 1 && s.acksLater(p, f, bytes) {
		s.freePacket(n)
		s.leave(p.flow, f)
		return
	}
	s.ackPackets++
	if p.again && !s.tcp.Timestamps {
		p.sent = -1
	}
	p.set(ack, int32(s.tcp.HeaderBytes), p.flow)
	p.seq, p.order, p.since = a.Cum, uint32(a.Sacked-a.Cum), uint32(a.SackedLen)
	load := loadOf(p.bytes, 0)
	if a.ECE {
		load |= marked
	}
	if s.hosts != nil {
		s.lead(p, f.dst, f.src, s.hosts.Ack(&f.path, now), &f.back)
		if s.meters != nil {
			p.mark = s.hosts.AckMark(&f.path, now)
		}
		if s.probing.on && s.config.AckUnits {
			s.dueProbes()
		}
	} else {
		s.fabric.unrouted(p, f.dst, f.src)
	}
	rest, then := p.start()
	s.transmit(s.first(p, f.dst), n, load|then, rest)
}

// acksLater reports whether the receiver waits for more before it acknowledges a packet of
// which so many bytes can be delivered.
func (s *simulation) acksLater(p *packet, f *flow, bytes int64) bool {
	f.waiting++
	whole := bytes == int64(s.tcp.MSS) && !f.receiver.Holed() // in order, and filled no hole
	if whole && int(f.waiting) < s.tcp.AckEvery && !p.marked && !p.again && !f.receiver.Done() {
		return true
	}
	f.waiting = 0
	return false
}

// receiveAck takes an acknowledgement in at a flow's source.
func (s *simulation) receiveAck(n uint32, p *packet) {
	i := p.flow
	f := s.flows.at(i)
	a := tcp.Ack{Cum: p.seq, ECE: p.marked, Echo: -1}
	if p.since > 0 {
		a.Sacked, a.SackedLen = p.seq+int64(p.order), int32(p.since)
	}
	if p.sent >= 0 {
		a.Echo = time.Duration(p.sent / 1000)
		s.rtt.add((s.now - p.sent) / 1000)
	}
	if s.meters != nil {
		s.hosts.Received(&f.path, p.mark, true, s.clock())
	}
	if s.heeds {
		s.hosts.Acked(&f.path, heeded(&a, f.base), s.clock())
	}
	s.freePacket(n)
	if !f.done {
		f.sender.Ack(a, s.clock())
		if f.whole != nil {
			s.acknowledged(n, i, f)
		} else if f.sender.Done() {
			s.finish(f)
		} else {
			s.pump(i, f)
		}
	}
	s.leave(i, f)
}

// heeded is what an acknowledgement says in the words of hosts, whose sequence numbers
// have 32 bits and go on from one flow of a connection to the next.
func heeded(a *tcp.Ack, base int64) fate.Ack {
	from := uint32(base + a.Sacked)
	return fate.Ack{All: uint32(base + a.Cum), From: from, To: from + uint32(a.SackedLen), Marked: a.ECE}
}

// newChoice sets up who chooses paths: hosts or switches.
func (s *simulation) newChoice(seed uint64) (err error) {
	c := &s.config
	for _, name := range spray.SwitchNames() {
		if name != c.Policy {
			continue
		}
		s.switches, err = spray.NewSwitch(spray.SwitchConfig{
			Topology: c.Known, Name: name, Seed: seed,
			Samples: c.Spray.DrillSamples, Memory: c.Spray.DrillMemory, Engines: c.Spray.DrillEngines, Blind: c.Spray.DrillBlind,
			FlowcellBytes: c.Options.FlowcellBytes, FlowletGap: c.Options.FlowletGap, Tau: c.Spray.Tau,
			Expiry: c.Options.Expiry, Parallel: c.Parallel, SampleAge: c.Spray.SampleAge,
		}, queues{s})
		if err != nil {
			return err
		}
		s.unit, s.watched = s.switches.Unit(), s.switches.Marks()
		return nil
	}
	s.hosts, err = spray.NewHosts(spray.HostsConfig{
		Topology: c.Known, Paths: s.graph.pathsOfHosts(), Policy: c.Policy, Options: c.Options, Seed: seed,
		RackSamples: c.Spray.RackSamples, SamplesOnly: c.Spray.SamplesOnly, Turns: c.Spray.Turns, AckUnits: c.AckUnits, Tau: c.Spray.Tau,
	})
	if err != nil {
		return err
	}
	s.heeds = s.hosts.Heeds()
	if s.hosts.Marks() {
		s.meters = spray.NewMeters(c.Topology, c.Spray.Tau)
		s.watched = true
	}
	return s.newProbing()
}

// newResequencer makes one for all hosts: flows tell them apart. Only where a bound
// is reached is that not the same as one for each.
func (s *simulation) newResequencer(seed uint64) {
	c := s.config.Resequencer
	if c == nil {
		return
	}
	all := *c
	for bound, standard := range map[*int]int{
		&all.PeerPackets: resequencer.DefaultPeerPackets, &all.PeerBytes: resequencer.DefaultPeerBytes,
		&all.TotalPackets: resequencer.DefaultTotalPackets, &all.TotalBytes: resequencer.DefaultTotalBytes,
		&all.Flows: resequencer.DefaultFlows,
	} {
		if *bound == 0 {
			*bound = standard
		}
		*bound = min(*bound*len(s.delivered), math.MaxInt32)
	}
	all.Seed = seed
	s.resequencer = resequencer.New[uint32](all)
}

// queues is what switches see of their ports.
type queues struct{ s *simulation }

func (q queues) QueueBytes(port int32) int { return q.s.queueBytes(port) }
