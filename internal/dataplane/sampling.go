package dataplane

import (
	"net/netip"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/clock"
	"weft/internal/paths"
	"weft/luopan"
	"weft/topology"
)

// Sampler sends the probes of a policy that samples. An egress calls it with its lock
// held.
type Sampler interface {
	// Use gives it the table to fill; nil if the policy does not sample.
	Use(table *luopan.Table)
	// Due reports whether there is something to be sent.
	Due(now time.Duration) bool
	// Pump sends what is due.
	Pump(now time.Duration)
}

// SetSampler makes s sample for the policy.
func (e *Egress) SetSampler(s Sampler) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sampler = s
	e.adopt()
}

// Lock takes the lock of an egress. A Sampler runs under this lock, since packets are
// sent by the table that it fills. Methods whose names end in Locked are called with the
// lock held.
func (e *Egress) Lock() { e.mu.Lock() }

// Unlock gives the lock back.
func (e *Egress) Unlock() { e.mu.Unlock() }

// Clock returns the egress's clock.
func (e *Egress) Clock() clock.Clock { return e.clock }

// RackLocked returns the edge switch of a host's rack, which is the rack's number in the
// table; ok is false if the address is in no rack.
func (e *Egress) RackLocked(host netip.Addr) (edge topology.NodeID, ok bool) {
	return e.paths.topo.RackAt(host)
}

// EncapsulateLocked writes the outer header of a live path to a host before a packet,
// as encap.Outer does. It is false if there is no such path.
func (e *Egress) EncapsulateLocked(buf []byte, to netip.Addr, path int, id uint16) (out []byte, ok bool) {
	p := e.paths.lookup(flowcell.AddressFrom(to))
	if p.group == nil || path >= len(p.group.out) || p.group.out[path] == nil {
		return nil, false
	}
	out, err := p.group.out[path].encapsulate(buf, p.rack, id)
	return out, err == nil
}

// OuterLocked returns the outer header of a path to a host, live or not; false if
// there is no such path.
func (e *Egress) OuterLocked(to netip.Addr, path int) (o encap.Outer, ok bool) {
	return paths.OuterTo(e.paths.topo, e.paths.racks.carrier, e.paths.address, to, path)
}

// WriteLocked writes packets that lie behind link.SuperHeadroom, with a virtio_net_hdr if
// the device wants one. It returns how many the device has taken.
func (e *Egress) WriteLocked(bufs [][]byte) int { return e.outlet.write(bufs) }

// ToldLocked counts the choices that a device accepted, and those that it refused.
func (e *Egress) ToldLocked() (told, untold uint64) {
	for _, l := range e.lanes {
		if a, ok := l.aware.(*sampled); ok {
			return a.told, a.untold
		}
	}
	return 0, 0
}
