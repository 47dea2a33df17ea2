package dataplane

import (
	"fmt"
	"net/netip"
	"slices"

	"weft/flowcell"
	"weft/policy"
	"weft/topology"
)

// lane is how the packets of one policy leave: by which paths, and what is known of
// these. An egress has a lane for its own policy, and one for each other policy of its
// flows or destinations: at most as many as there are policies. A lane keeps the packets
// and state that were assigned to it.
type lane struct {
	unit   flowcell.Unit // of the policy
	sprays bool          // the policy does
	below  bool          // below the outlet a program encapsulates, unless each packet has a path of its own
	uplink bool          // it does, by the number in the packet

	paths       *pathTable
	aware       aware     // nil if the policy goes by nothing but its Rule
	informed    *informed // that aware is, or nil
	heeding     *heeding  // that aware is, or nil
	awareConfig awareConfig
}

// PrefixPolicy gives packets to some addresses a policy.
type PrefixPolicy struct {
	Prefix netip.Prefix // of either family
	Policy string
}

// maxPrefixes bounds Config.Policies. Each new pair looks through them once.
const maxPrefixes = 1024

// diversion is a PrefixPolicy with its lane.
type diversion struct {
	prefix netip.Prefix
	lane   *lane
}

// newLane returns one for a policy. Only that of the host's own policy may be carried
// out by the uplink's program.
func newLane(c *Config, t *topology.Topology, p policy.Policy, own bool) (*lane, error) {
	uplink := own && c.UplinkEncapsulates
	l := &lane{paths: newPathTable(t, c.Address, p, c.Carrier, c.SprayDatagrams, c.Seed)}
	l.paths.inner6 = c.inner6()
	if c.Topology6 != nil {
		l.paths.addSix(c, c.Topology6, p)
	}
	l.goBy(p, uplink)
	a := newAwareConfig(c, p, uplink)
	know, err := a.in(t, l.paths.self)
	if err != nil {
		return nil, fmt.Errorf("Policy %s: %w", p.Name, err)
	}
	l.awareConfig = a
	l.know(know)
	return l, nil
}

// goBy gives a lane its policy. uplink says that the device carries that out.
func (l *lane) goBy(p policy.Policy, uplink bool) {
	l.unit, l.sprays, l.below = p.Unit, p.Sprays(), uplink
	l.uplink = uplink && p.Unit.Kind != flowcell.UnitPacket
}

// know replaces what is known by a; nil makes the lane go by its policy's Rule.
func (l *lane) know(a aware) {
	l.aware = a
	l.informed, _ = a.(*informed)
	l.heeding, _ = a.(*heeding)
}

// divert gives the destinations of Config.Policies their lanes.
func (e *Egress) divert(all []PrefixPolicy) error {
	if len(all) > maxPrefixes {
		return fmt.Errorf("Policies has %d entries, at most %d are allowed", len(all), maxPrefixes)
	}
	taken := make(map[netip.Prefix]int)
	for i, d := range all {
		if !d.Prefix.IsValid() || d.Prefix.Addr().Is4In6() {
			return fmt.Errorf("Policies[%d].Prefix %v is not valid: give one such as 10.1.0.0/16", i, d.Prefix)
		}
		prefix := d.Prefix.Masked()
		if j, ok := taken[prefix]; ok {
			return fmt.Errorf("Policies[%d].Prefix %v is that of Policies[%d] already", i, d.Prefix, j)
		}
		taken[prefix] = i
		l, _, err := e.open(d.Policy)
		if err != nil {
			return fmt.Errorf("Policies[%d].Policy: %w", i, err)
		}
		e.paths.diversions = append(e.paths.diversions, diversion{prefix, l})
	}
	slices.SortStableFunc(e.paths.diversions, func(a, b diversion) int { return b.prefix.Bits() - a.prefix.Bits() })
	return nil
}

// Policy returns the number of a policy for Outgoing.Policy, and makes its lane if there
// is none yet. An error names the known policies.
func (e *Egress) Policy(name string) (number uint8, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, number, err = e.open(name)
	return number, err
}

// open finds or makes the lane of a policy.
func (e *Egress) open(name string) (l *lane, number uint8, err error) {
	for i, l := range e.lanes {
		if l.paths.policy.Name == name {
			return l, uint8(i + 1), nil
		}
	}
	p, err := policy.New(name, e.config.PolicyOptions)
	if err != nil {
		return nil, 0, err
	}
	p = p.At(e.config.PolicyOptions.Rate(e.paths.topo.Slowest()))
	if l, err = newLane(&e.config, e.paths.topo, p, false); err != nil {
		return nil, 0, err
	}
	l.paths.tunnel = e.paths.tunnel
	l.paths.carry(e.paths.carriage)
	l.paths.groups.ids = e.paths.groups.ids
	if six := e.paths.six; six != nil {
		l.paths.addSix(&e.config, six.topo, p)
		l.paths.six.carry(six.carriage)
	}
	e.lanes = append(e.lanes, l)
	e.adopt()
	return l, uint8(len(e.lanes)), nil
}

// enter finds the lane of a packet, and the state towards its destination there. What
// its flow was given counts more than what its destination was.
func (e *Egress) enter(o *Outgoing) {
	o.lane, o.pair = &e.lane, e.paths.to(o.pkt.Flow.Dst)
	if o.Policy != 0 || o.pair.instead != nil {
		e.change(o)
	}
}

// change gives a packet another lane than the egress's own.
func (e *Egress) change(o *Outgoing) {
	if o.lane = o.pair.instead; o.Policy != 0 {
		o.lane = e.lanes[o.Policy-1]
	}
	o.pair = o.lane.paths.to(o.pkt.Flow.Dst)
}

// CellBytes returns the most payload, in bytes, of a super-segment that is one flowcell
// under each of the policies in use, and one train of a tunnel; 0 if none has flowcells.
func (e *Egress) CellBytes() (least int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.lanes {
		if u := l.unit; u.Kind == flowcell.UnitFlowcell && (least == 0 || u.Bytes < least) {
			least = u.Bytes
		}
	}
	if t := e.paths.tunnel; t != nil && least > 0 {
		least = min(least, TrainPayload(t.Underlay.MTU(), t.room))
	}
	return least
}
