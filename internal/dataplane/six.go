package dataplane

import (
	"errors"
	"fmt"

	"weft/encap"
	"weft/liveness"
	"weft/policy"
	"weft/topology"
)

// In a fabric whose switches have addresses of both families, IPv6 packets have outer headers
// of IPv6 (RFC 2473), from Config.Address6 to the IPv6 addresses of bouncing switches. Both
// views are of one fabric, so racks, links and paths have the same numbers in both, and a
// policy that is aware of one family's paths is aware of the other's.

// validateTopology6 checks the fabric as the IPv6 address sees it.
func (c *Config) validateTopology6() error {
	t := c.Topology6
	switch {
	case t == nil:
		return nil
	case c.Inner6:
		return errors.New("Topology6 is given, and CarryIPv6, too, which is for fabrics without: leave one out")
	case c.Topology.Computed() || t.Computed():
		return fmt.Errorf("Topology6 is %v, and Topology %v: both must be data, from topology.FromGraph", t, c.Topology)
	}
	id, ok := t.ByAddr(c.Address6)
	if !ok || t.Node(id).Addr != c.Address6 {
		return fmt.Errorf("Topology6 is not as Address6 %v sees the fabric: make it by topology.FromGraph with that address", c.Address6)
	}
	if !t.Alike(c.Topology) {
		return errors.New("Topology6 has other switches and links than Topology: make both of one graph")
	}
	if c.Carrier == encap.CarrierSRv6 {
		if err := t.CheckSIDs(); err != nil {
			return fmt.Errorf("Carrier srv6: Topology6: %w", err)
		}
	}
	if mtu := c.MTU6(); mtu < leastMTU6 {
		return fmt.Errorf("Topology6 is given, but Device leaves %d bytes for IPv6 packets, which need %d: raise its MTU or leave Topology6 out", mtu, leastMTU6)
	}
	return nil
}

// MTU6 is that of inner IPv6 packets, in bytes.
func (c *Config) MTU6() int {
	if c.Topology6 == nil {
		return c.MTU()
	}
	return c.Device.MTU() - c.Carrier.OverheadFrom(c.Address6)
}

// addSix gives a table one of IPv6 beside it.
func (t *pathTable) addSix(c *Config, fabric *topology.Topology, p policy.Policy) {
	t.six = newPathTable(fabric, c.Address6, p, c.Carrier, c.SprayDatagrams, c.Seed)
	t.six.inner6, t.six.longest = true, c.MTU6()
	t.six.numbers, t.six.groups.ids = t.numbers, t.groups.ids
}

// tables are this one and, if there is one, that of IPv6.
func (t *pathTable) tables() []*pathTable {
	if t.six == nil {
		return []*pathTable{t}
	}
	return []*pathTable{t, t.six}
}

// of returns the table that a pair is in.
func (t *pathTable) of(p *pair) *pathTable {
	if t.six != nil && p.six {
		return t.six
	}
	return t
}

// MTU6 is Egress.MTU of IPv6 packets.
func (e *Egress) MTU6() int { return e.config.MTU6() }

// Six are the parts of an Egress that send IPv6 packets, where it has a Topology6. It is for
// what looks out for these packets' paths.
type Six struct{ egress *Egress }

// Six returns them.
func (e *Egress) Six() Six { return Six{e} }

// SetTopology is Egress.SetTopology of IPv6 packets.
func (s Six) SetTopology(t *topology.Topology) {
	e := s.egress
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.lanes {
		if old := l.paths.six; !old.change(t) {
			e.retire(old)
			l.paths.addSix(&e.config, t, old.policy)
		}
		l.paths.recent = l.paths.none
	}
}

// SetCarriage is Egress.SetCarriage of IPv6 packets.
func (s Six) SetCarriage(c *liveness.Carriage) {
	e := s.egress
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.lanes {
		l.paths.six.carry(c)
	}
}

// Topology is Egress.Topology of IPv6 packets.
func (s Six) Topology() *topology.Topology {
	e := s.egress
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.paths.six.topo
}
