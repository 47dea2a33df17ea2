package dataplane

import (
	"weft/liveness"
	"weft/topology"
)

// plain reports whether a pair's packets leave as they are: they need no bouncing
// switch, or the carrier is not used to the rack.
func (p *pair) plain() bool { return p.direct || p.rack != nil && p.rack.plain }

// SetCarriage makes later packets use the carrier only to racks for which c says so. nil
// means all racks.
func (e *Egress) SetCarriage(c *liveness.Carriage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.lanes {
		l.paths.carry(c)
	}
}

func (t *pathTable) carry(c *liveness.Carriage) {
	t.carriage = c
	for _, r := range t.racks.racks {
		t.carryTo(r)
	}
}

// carryTo copies what is known of a rack to where packets look at it without a
// lookup.
func (t *pathTable) carryTo(r *rack) {
	r.plain, r.mtu = t.carriage.Plain(r.id), t.carriage.MTU(r.id)
	if t.longest > 0 && (r.mtu == 0 || r.mtu > t.longest) {
		r.mtu = t.longest
	}
	if r.six && (!t.inner6 || r.mtu != 0 && r.mtu < leastMTU6) {
		r.plain = true
	}
}

// SetCarriage makes later packets go plain to racks for which the carrier is not proved.
// The kernel gets an ICMP error for packets that are too long for the paths to their
// rack. Connections continue. The Carriage must be of the topology in use. nil, the
// initial value, means that the carrier is used everywhere. IPv6 has SetCarriage6.
func (g *Gateway) SetCarriage(c *liveness.Carriage) { g.egress.SetCarriage(c) }

// sameFabric reports whether numbers of nodes mean the same in two topologies.
func sameFabric(a, b *topology.Topology) bool {
	return a != nil && b != nil && a.String() == b.String()
}
