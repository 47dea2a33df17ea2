package fabric

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"weft/drb"
	"weft/flowcell"
	"weft/policy"
	"weft/topology"
)

// maxPaths bounds the order of paths to one rack; MAX_PATHS in bpf/spray.c. A
// three-level Clos of 64-port switches has as many cores.
const maxPaths = 1024

// sprayMode is how a TCP packet's step in the order is found; the order of the
// enum in bpf/spray.c.
type sprayMode uint32

const (
	sprayByNumber sprayMode = iota // the five-tuple's hash plus the IPv4 ID
	sprayByHash                    // the five-tuple's hash alone
	sprayRandom
)

// choice is a policy as the program carries it out.
type choice struct {
	mode  sprayMode
	shift uint32 // from an IPv4 ID to a step
}

// flowcellShift leaves of the ID the flowcell (flowcell.Number).
const flowcellShift = 6

// choiceOf translates a policy. The program keeps no state but flowcells: what
// needs any, it cannot do.
func choiceOf(p policy.Policy) (choice, error) {
	inTurn := p.Rule == drb.DigitReversal || p.Rule == drb.RoundRobin
	switch {
	case p.Unit.Kind == flowcell.UnitPacket && inTurn:
		return choice{mode: sprayByNumber}, nil
	case p.Unit.Kind == flowcell.UnitPacket && p.Rule == drb.Random:
		return choice{mode: sprayRandom}, nil
	case p.Unit.Kind == flowcell.UnitFlowcell && inTurn:
		return choice{sprayByNumber, flowcellShift}, nil
	case p.Unit.Kind == flowcell.UnitFlow && p.Rule == drb.Hash:
		return choice{mode: sprayByHash}, nil
	}
	var can []string
	for _, name := range policy.Names() {
		if q, err := policy.New(name, policy.Options{}); err == nil && q != p {
			if _, err := choiceOf(q); err == nil {
				can = append(can, name)
			}
		}
	}
	return choice{}, fmt.Errorf("policy %s (%v, %v) needs state per flow, which the offload does not keep; choose one of %v", p.Name, p.Unit, p.Rule, can)
}

// sprayGroup is the way to racks with the same live paths: the bouncing switches
// in the order in which they are visited, none if the racks are cut off. What is
// in the first two fields does not change.
type sprayGroup struct {
	choice
	order  []netip.Addr
	key    string
	number uint32 // in the program's tables; 0: not there
	racks  int    // that go by it there
}

// sprayRack is a rack that a host may send to, by one of the hosts in it.
type sprayRack struct {
	prefix netip.Prefix
	host   topology.NodeID
}

// rackBits is the length of a rack's prefix (thesis §3.1.2).
const rackBits = 24

// racksOf lists the racks but the host's own.
func racksOf(t *topology.Topology, self topology.NodeID) []sprayRack {
	var racks []sprayRack
	own := rackOf(t.Node(self).Addr)
	for host := range t.Hosts() { // a rack's hosts follow each other
		prefix := rackOf(host.Addr)
		if prefix == own || len(racks) > 0 && racks[len(racks)-1].prefix == prefix {
			continue
		}
		racks = append(racks, sprayRack{prefix, host.ID})
	}
	return racks
}

// sprayGroups are the groups in use under one policy, by key.
type sprayGroups struct {
	self   topology.NodeID
	policy policy.Policy
	how    choice
	groups map[string]*sprayGroup
}

func newSprayGroups(self topology.NodeID, p policy.Policy) (*sprayGroups, error) {
	how, err := choiceOf(p)
	return &sprayGroups{self, p, how, make(map[string]*sprayGroup)}, err
}

// to returns the way to a rack over a topology.
func (s *sprayGroups) to(rack sprayRack, t *topology.Topology) (*sprayGroup, error) {
	paths := t.PathsOrAll(s.self, rack.host)
	// Most racks have the same live paths, and an order is not cheap.
	key := groupKey(paths)
	if g := s.groups[key]; g != nil {
		return g, nil
	}
	g := &sprayGroup{choice: s.how, key: key}
	list := paths.Weighted()
	if len(list) > maxPaths {
		list = paths.Live // all alike: the weights are of too many digits
	}
	for _, n := range s.policy.Rule.Order(paths.Bases, list) {
		g.order = append(g.order, paths.Addr(n))
	}
	if len(g.order) > maxPaths {
		return nil, fmt.Errorf("%s: %d paths to %s, the offload takes at most %d; use the embedded stack or a smaller fabric", t, len(g.order), rack.prefix, maxPaths)
	}
	s.groups[key] = g
	return g, nil
}

// sprayTable is the ways to all racks.
type sprayTable map[netip.Prefix]*sprayGroup

func newSprayTable(t *topology.Topology, self topology.NodeID, p policy.Policy) (sprayTable, error) {
	groups, err := newSprayGroups(self, p)
	if err != nil {
		return nil, err
	}
	table := make(sprayTable)
	for _, rack := range racksOf(t, self) {
		if table[rack.prefix], err = groups.to(rack, t); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// groupKey is equal for equal sets of live paths with equal weights.
func groupKey(s topology.PathSet) string {
	key := binary.BigEndian.AppendUint32(nil, uint32(s.Bounce(0)))
	for _, n := range s.Live {
		key = binary.BigEndian.AppendUint32(key, uint32(n))
	}
	for _, w := range s.Weights {
		key = append(key, byte(w)) // 32 at most
	}
	return string(key)
}

func rackOf(host netip.Addr) netip.Prefix { return netip.PrefixFrom(host, rackBits).Masked() }

// bouncesOf lists the bouncing switches that a host may ever use over a
// topology, dead paths' included: the counters have an entry for each.
func bouncesOf(t *topology.Topology, self topology.NodeID) ([]netip.Addr, error) {
	table, err := newSprayTable(t.Whole(), self, policy.PerFlow)
	if err != nil {
		return nil, err
	}
	seen := make(map[netip.Addr]bool)
	var all []netip.Addr
	for _, g := range table {
		for _, a := range g.order {
			if !seen[a] {
				seen[a] = true
				all = append(all, a)
			}
		}
	}
	return all, nil
}
