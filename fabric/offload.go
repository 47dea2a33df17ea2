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

// sprayGroup is the way to a rack: the bouncing switches in the order in which
// they are visited, none if the rack is cut off. Groups are shared and must not
// be changed.
type sprayGroup struct {
	choice
	order []netip.Addr
}

// sprayTable is what the program knows of a fabric, by the prefix of each rack
// but the host's own. It is made anew when the topology changes.
type sprayTable map[netip.Prefix]*sprayGroup

// rackBits is the length of a rack's prefix (thesis §3.1.2).
const rackBits = 24

func newSprayTable(t *topology.Topology, self topology.NodeID, p policy.Policy) (sprayTable, error) {
	how, err := choiceOf(p)
	if err != nil {
		return nil, err
	}
	table := make(sprayTable)
	groups := make(map[string]*sprayGroup)
	for host := range t.Hosts() {
		rack := rackOf(host.Addr)
		if _, ok := table[rack]; ok {
			continue
		}
		paths := t.Paths(self, host.ID)
		if paths.Direct() {
			continue
		}
		// Most racks have the same live paths, and an order is not cheap.
		key := groupKey(paths)
		g := groups[key]
		if g == nil {
			g = &sprayGroup{choice: how}
			for _, n := range p.Rule.Order(paths.Bases, paths.Live) {
				g.order = append(g.order, paths.Addr(n))
			}
			groups[key] = g
		}
		if len(g.order) > maxPaths {
			return nil, fmt.Errorf("%s: %d paths to %s, the offload takes at most %d; use the embedded stack or a smaller fabric", t, len(g.order), rack, maxPaths)
		}
		table[rack] = g
	}
	return table, nil
}

// groupKey is equal for equal sets of live paths.
func groupKey(s topology.PathSet) string {
	key := binary.BigEndian.AppendUint32(nil, uint32(s.Bounce(0)))
	for _, n := range s.Live {
		key = binary.BigEndian.AppendUint32(key, uint32(n))
	}
	return string(key)
}

func rackOf(host netip.Addr) netip.Prefix { return netip.PrefixFrom(host, rackBits).Masked() }

// bouncesOf lists the bouncing switches that a host may ever use over a
// topology, dead paths' included: the counters have an entry for each.
func bouncesOf(t *topology.Topology, self topology.NodeID) ([]netip.Addr, error) {
	whole, err := topology.Parse(t.String())
	if err != nil {
		return nil, err
	}
	table, err := newSprayTable(whole, self, policy.PerFlow)
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
