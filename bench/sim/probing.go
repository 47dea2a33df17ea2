package sim

import (
	"weft/bench/sim/spray"
	"weft/policy"
)

// probing carries the probes of hosts that sample congestion (Luopan §3.1).
type probing struct {
	on     bool
	at     int64 // when an event is under way for; never: none is
	out    []underway
	unused []uint32
	send   func(spray.Probe)
}

// underway is a probe and what it has met.
type underway struct {
	spray.Probe
	queue  int32 // in spray.QueueUnit
	meters int32
}

func (s *simulation) newProbing() error {
	b := &s.probing
	b.at = never
	b.send = s.sendProbe
	p, err := policy.New(s.config.Policy, s.config.Options)
	if err != nil {
		return err
	}
	b.on = p.Aware == policy.Sampled
	s.watched = s.watched || b.on
	return nil
}

// dueProbes has probe called in time.
func (s *simulation) dueProbes() {
	b := &s.probing
	next := s.hosts.Next()
	if next >= spray.Never {
		return
	}
	if at := max(ps(next), s.now); at < b.at {
		b.at = at
		s.wheel.push(event{at: at, load: sampling})
	}
}

func (s *simulation) probe() {
	b := &s.probing
	if s.now != b.at {
		return // another event took its place
	}
	b.at = never
	s.hosts.Probes(s.clock(), b.send)
	s.dueProbes()
}

// sendProbe sends one on its way, from a host or an edge switch.
func (s *simulation) sendProbe(p spray.Probe) {
	b := &s.probing
	var i uint32
	if n := len(b.unused); n > 0 {
		i = b.unused[n-1]
		b.unused = b.unused[:n-1]
	} else {
		i = uint32(len(b.out))
		b.out = append(b.out, underway{})
	}
	b.out[i] = underway{Probe: p}
	n := s.packets.take()
	*s.packets.at(n) = packet{bytes: spray.ProbeBytes, kind: probe, flow: i}
	s.travel(n, int32(p.Owner), int32(p.Dst), p.Path)
}

// travel sends a probe or an answer from a node to another, hosts or edge switches.
func (s *simulation) travel(n uint32, from, to int32, path int) {
	p := s.packets.at(n)
	s.probePackets++
	p.sent = s.now
	hosts := int32(len(s.delivered))
	src, dst := s.fabric.hostAt(from), s.fabric.hostAt(to)
	p.hops = s.fabric.route(&p.route, src, dst, path)
	if to >= hosts {
		p.hops--
	}
	rest, load := wayBy(p.route[:p.hops]), loadOf(p.bytes, arrived)
	if from < hosts {
		s.transmit(up(from), n, load, rest)
		return
	}
	s.transmit(rest.next(), n, load+onePassed, rest.rest())
}

// hostAt returns a host, or of an edge switch its first one.
func (f *fabric) hostAt(node int32) int32 {
	hosts := int32(len(f.rack))
	if node < hosts {
		return node
	}
	return (node - hosts) * f.rackHosts
}

// meter writes the queue of a port into a probe.
func (s *simulation) meter(p *packet, backlog int64, c *class) {
	u := &s.probing.out[p.flow]
	u.queue += int32(backlog / c.byteTime / spray.QueueUnit)
	u.meters++
}

// answer sends a probe back to who asked.
func (s *simulation) answer(n uint32, p *packet) {
	u := &s.probing.out[p.flow]
	p.kind = answer
	s.travel(n, int32(u.Dst), int32(u.Owner), u.Path)
}

// answered hands an answer to who asked.
func (s *simulation) answered(n uint32, p *packet) {
	u := &s.probing.out[p.flow]
	s.hosts.Answer(u.Probe, int(u.queue), int(u.meters), s.clock())
	s.discard(n)
	s.dueProbes()
}

// endProbe forgets one.
func (s *simulation) endProbe(i uint32) { s.probing.unused = append(s.probing.unused, i) }
