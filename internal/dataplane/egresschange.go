package dataplane

import (
	"net/netip"

	"weft/flowcell"
	"weft/policy"
	"weft/topology"
)

// Reaches reports whether there is a way to dst. Only a tunnel may have none.
func (e *Egress) Reaches(dst netip.Addr) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.paths.to(flowcell.AddressFrom(dst))
	return p.plain() || p.group != nil && len(p.group.Live) > 0
}

// SetTopology makes later packets use t, which must contain the egress's address.
func (e *Egress) SetTopology(t *topology.Topology) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.paths.change(t) {
		e.replace(t, e.paths.policy)
	}
}

// Topology returns the topology in use; nil in a tunnel.
func (e *Egress) Topology() *topology.Topology {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.paths.topo
}

// replace begins anew with another fabric or policy.
func (e *Egress) replace(t *topology.Topology, p policy.Policy) {
	old := e.paths
	old.groups.addTo(e.past)
	e.stats.PairsEvicted += old.evicted
	e.stats.GroupsReset += old.groups.resets
	e.paths = newPathTable(t, old.address, p, old.racks.carrier, old.spray, e.seed)
	e.paths.tunnel = old.tunnel
	if sameFabric(t, old.topo) {
		e.paths.carry(old.carriage)
	}
	e.paths.groups.ids = old.groups.ids // flows under way tell by it that their path is gone
	if t != nil {
		a, _ := e.awareConfig.in(t, e.paths.self) // the configuration has been found good
		e.adopt(a)
	}
}

// setPolicy makes later packets take paths by p. a says what it is aware of, and
// uplink whether the uplink's program carries it out.
func (e *Egress) setPolicy(p policy.Policy, a awareConfig, uplink bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.awareConfig = a
	e.uplink = uplink && p.Unit.Kind != flowcell.UnitPacket
	e.replace(e.paths.topo, p)
}
