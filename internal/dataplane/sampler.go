package dataplane

import (
	"net/netip"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/clock"
	"weft/internal/paths"
	"weft/internal/probe"
	"weft/topology"
)

// sampler runs a probe.Sampler, which sends the probes that a policy which samples asks
// for and answers those of others, whatever the policy. It belongs to egress and is
// guarded by its lock, since packets are sent by the table that it fills. A timer drives
// it, and what egress sends.
type sampler struct {
	egress *Egress
	probes *probe.Sampler
	alarm  *clock.Alarm
	out    *Outbox
	closed bool
}

// sampleBatch is the most samples that are written at once.
const sampleBatch = 16

// sample makes an egress answer samples, and send them if a policy of its asks for that.
func (e *Egress) sample() *sampler {
	s := &sampler{egress: e}
	pause := clock.LeastPause
	if e.config.Clock != nil {
		pause = 1
	}
	s.alarm = clock.NewAlarm(e.clock, pause, s.tick)
	s.out = newOutbox(sampleBatch, encap.MaxOverhead+encap.SampleLen, func(bufs [][]byte) int { return e.outlet.write(bufs) })
	s.probes = probe.NewSampler(probe.SamplerConfig{
		Address: e.config.Address, Encapsulate: e.encapsulateTo, Outer: e.outerTo, Rack: e.rackAt,
		Write: func(packet []byte) error { s.out.Add(packet); return nil },
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sampler = s
	e.adopt()
	return s
}

// tick is the timer's work.
func (s *sampler) tick() {
	s.egress.mu.Lock()
	defer s.egress.mu.Unlock()
	s.alarm.Rang()
	s.pump(s.egress.clock.Now())
}

// pump sends what is due.
func (s *sampler) pump(now time.Duration) {
	if s.closed {
		return
	}
	s.probes.Pump(now)
	s.settle()
}

// settle writes what is to be sent, and has the timer expire when something is due.
func (s *sampler) settle() {
	s.out.Flush()
	s.alarm.Set(s.probes.Next())
}

// receive takes a packet that encap.IsSample takes for one.
func (s *sampler) receive(packet []byte) {
	s.egress.mu.Lock()
	defer s.egress.mu.Unlock()
	if s.closed {
		return
	}
	s.probes.Take(packet, s.egress.clock.Now())
	s.settle()
}

// rackAt returns the edge switch of the rack of a host, which has the number of the rack
// in the table; false if an address is in no rack.
func (e *Egress) rackAt(host netip.Addr) (edge topology.NodeID, ok bool) {
	return e.paths.topo.RackAt(host)
}

// encapsulateTo writes the outer header of a live path to a host before a packet, as
// encap.Outer does. It is false if there is no such path.
func (e *Egress) encapsulateTo(buf []byte, to netip.Addr, path int, id uint16) (out []byte, ok bool) {
	p := e.paths.lookup(flowcell.AddressFrom(to))
	if p.group == nil || path >= len(p.group.out) || p.group.out[path] == nil {
		return nil, false
	}
	out, err := p.group.out[path].encapsulate(buf, p.rack, id)
	return out, err == nil
}

// outerTo returns the outer header of a path to a host, live or not; false if there is no
// such path.
func (e *Egress) outerTo(to netip.Addr, path int) (o encap.Outer, ok bool) {
	return paths.OuterTo(e.paths.topo, e.paths.racks.carrier, e.paths.address, to, path)
}

// SampleStats returns the counters of samples; zero where there are none, as in a tunnel.
func (e *Egress) SampleStats() (n probe.SampleStats) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sampler == nil {
		return n
	}
	n = e.sampler.probes.Stats()
	n.Drops = e.sampler.out.Drops()
	for _, l := range e.lanes {
		if a, ok := l.aware.(*sampled); ok {
			n.Told, n.Untold = a.told, a.untold
			break
		}
	}
	return n
}

// Close ends what an egress does at times of its own: it sends no more samples, and
// answers none. The device stays open.
func (e *Egress) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.sampler; s != nil {
		s.closed = true
		s.alarm.Set(clock.Never)
	}
}
