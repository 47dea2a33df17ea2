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

// Carries returns nil if packets can have their paths in t as the Carrier has them, otherwise
// what is missing.
func (e *Egress) Carries(t *topology.Topology) error {
	c := Config{Topology: t, Carrier: e.config.Carrier}
	return c.validateCarrier()
}

// SetTopology makes later packets use t, which Carries must allow and which must contain the egress's address.
func (e *Egress) SetTopology(t *topology.Topology) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.lanes {
		if !l.paths.change(t) {
			p := l.paths.policy.At(e.config.PolicyOptions.Rate(t.Slowest()))
			l.goBy(p, l.below)
			e.replace(l, t, p)
		}
	}
}

// Topology returns the topology in use; nil in a tunnel.
func (e *Egress) Topology() *topology.Topology {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.paths.topo
}

// replace begins a lane anew with another fabric or policy.
func (e *Egress) replace(l *lane, t *topology.Topology, p policy.Policy) {
	old := l.paths
	e.retire(old)
	l.paths = newPathTable(t, old.address, p, old.racks.carrier, old.spray, e.seed)
	l.paths.tunnel, l.paths.diversions, l.paths.inner6 = old.tunnel, old.diversions, old.inner6
	l.paths.six, l.paths.numbers = old.six, old.numbers
	if sameFabric(t, old.topo) {
		l.paths.carry(old.carriage)
	}
	l.paths.groups.ids = old.groups.ids // flows under way tell by it that their path is gone
	if t != nil {
		a, _ := l.awareConfig.in(t, l.paths.self) // the configuration has been found good
		l.know(a)
	}
	e.adopt()
}

// retire keeps the counts of a table that goes.
func (e *Egress) retire(t *pathTable) {
	t.groups.addTo(e.past)
	e.stats.PairsEvicted += t.evicted
	e.stats.GroupsReset += t.groups.resets
}

// setPolicy makes later packets take paths by p, which o has adjusted. a says what it is aware of, and
// uplink whether the uplink's program carries it out.
func (e *Egress) setPolicy(p policy.Policy, o policy.Options, a awareConfig, uplink bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.config.PolicyOptions = o
	e.awareConfig = a
	e.goBy(p, uplink)
	e.replace(&e.lane, e.paths.topo, p)
}
