package dataplane

import (
	"net/netip"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/clock"
	"weft/internal/paths"
	"weft/link"
	"weft/luopan"
	"weft/topology"
)

// Seed is the seed that everything random of a host begins with.
func (e *Egress) Seed() uint64 { return e.seed }

// MTU is that of the packets that Send takes, in bytes.
func (e *Egress) MTU() int { return e.config.MTU() }

// Unit is what takes one path as a whole, by the policy at the beginning.
func (e *Egress) Unit() flowcell.Unit {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.paths.policy.Unit
}

// TakesSupers reports whether Send takes super-segments, now.
func (e *Egress) TakesSupers() bool {
	return e.tunnel != nil || e.super != nil && e.super.MaxSuper() > 0
}

// Refuse has ICMP errors about packets that are too long given to refuse, whose they
// are from then on. It is called with the lock held.
func (e *Egress) Refuse(refuse func(packet []byte)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refuse = refuse
}

// Remember has an egress find out which path has lost what. probes says that TCP
// sends tail loss probes (RFC 8985 §7).
func (e *Egress) Remember(probes bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.evidence = newEvidence(e.seed, probes)
}

// OnLoss has an egress that remembers call suspect, with the lock held, when Report
// has losses to tell of.
func (e *Egress) OnLoss(suspect func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.suspect = suspect
}

// WriteProbes sends packets that lie behind link.SuperHeadroom, and returns how many
// the device has taken.
func (e *Egress) WriteProbes(bufs [][]byte) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.WriteLocked(bufs)
}

// Sampler sends what a policy that samples asks for. An egress calls it with its lock
// held.
type Sampler interface {
	// Use has it fill a table; nil: the policy does not sample.
	Use(table *luopan.Table)
	// Due reports whether there is something to be sent.
	Due(now time.Duration) bool
	// Pump sends it.
	Pump(now time.Duration)
}

// SetSampler has s measure what the policy asks for.
func (e *Egress) SetSampler(s Sampler) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sampler = s
	e.adopt(e.aware)
}

// Lock takes the lock of an egress, under which a Sampler lives: the table that it
// fills is the one that packets are sent by. What ends in Locked is called with it.
func (e *Egress) Lock() { e.mu.Lock() }

// Unlock gives it back.
func (e *Egress) Unlock() { e.mu.Unlock() }

// Clock is the one that an egress lives by.
func (e *Egress) Clock() clock.Clock { return e.clock }

// TopologyLocked is the topology in use, and the number of the egress's host in it.
func (e *Egress) TopologyLocked() (t *topology.Topology, self topology.NodeID) {
	return e.paths.topo, e.paths.self
}

// EncapsulateLocked writes the outer header of a live path to a host before a packet,
// as encap.Outer does; false if there is none.
func (e *Egress) EncapsulateLocked(buf []byte, to netip.Addr, path int, id uint16) (out []byte, ok bool) {
	p := e.paths.lookup(flowcell.AddressFrom(to))
	if p.group == nil || path >= len(p.group.out) || p.group.out[path] == nil {
		return nil, false
	}
	out, err := p.group.out[path].encapsulate(buf, p.rack, id)
	return out, err == nil
}

// OuterLocked is the outer header of a path to a host, live or not; false if there is
// none.
func (e *Egress) OuterLocked(to netip.Addr, path int) (o encap.Outer, ok bool) {
	return paths.OuterTo(e.paths.topo, e.paths.racks.carrier, e.paths.address, to, path)
}

// WriteLocked writes packets that lie behind link.SuperHeadroom, a virtio_net_hdr
// included where the device wants one, and returns how many were taken.
func (e *Egress) WriteLocked(bufs [][]byte) (n int) {
	if e.super != nil {
		n, _ = e.super.WriteSuper(bufs, link.SuperHeadroom)
	} else {
		n, _ = e.dev.Write(bufs, link.SuperHeadroom)
	}
	return n
}

// UntoldLocked counts the choices that a PathDevice did not take.
func (e *Egress) UntoldLocked() uint64 {
	if a, ok := e.aware.(*sampled); ok {
		return a.untold
	}
	return 0
}
