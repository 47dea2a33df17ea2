package fabric

import (
	"fmt"
	"slices"
	"strings"

	"weft/topology"
)

// The ways to spread what goes up without an outer header.
const (
	RoutingECMP     = "ecmp"      // by the kernel's hash of the five-tuple
	RoutingTwoLevel = "two-level" // by the destination's host ID (thesis §3.1.3)
)

// Routings lists what Options.Routing may be, the default first.
func Routings() []string { return []string{RoutingECMP, RoutingTwoLevel} }

// A packet's destination is looked up in two levels (thesis §3.1.3). The first level has
// the terminating prefixes: those that lead down, and those behind one port only. The
// second level is for all other prefixes, such as the default. It has a table for each port
// up, and the destination's host ID, the last byte of its address, says which one.
//
// Linux has no routes by suffix. So packets that come in get a mark by their host ID, and
// rules look up marked packets first in the first level, then in the mark's table. Where
// both have no route whose port has a carrier, the main table decides, which has the same
// prefixes with ECMP. So a switch whose own port up fails goes on at once without anybody's
// help. Packets without a mark, such as the switch's own, use the main table only.
const (
	suffixBit        = 0x400 // of the marks of package fabric: there is a group
	firstLevelRule   = virtualRule + 1
	suffixRule       = virtualRule + 2
	firstLevelTable  = 5600
	suffixTableFirst = firstLevelTable + 1

	// maxSuffixGroups is that of the host IDs, which leave the bit 128 to embedded stacks.
	maxSuffixGroups = 126
	hostIDMask      = 0x7f
	firstHostID     = 2 // 1 is the switch (thesis §3.1.2)
)

// SuffixGroup is the host IDs whose packets a switch sends up by one port.
type SuffixGroup struct {
	IDs   []int  `json:"ids"`   // last bytes of addresses, without the bit 128 that those of embedded stacks have
	Port  string `json:"port"`  // by which they go up where it leads to the destination
	Mark  uint32 `json:"mark"`  // of packets to them, in the bits 0x7ff
	Table int    `json:"table"` // of the second level
}

// checkRouting says why the switches of a fabric cannot route so, nil if they can.
func (o Options) checkRouting(t *topology.Topology) error {
	switch o.Routing {
	case "", RoutingECMP:
		return nil
	case RoutingTwoLevel:
	default:
		return fmt.Errorf("routing %q: must be %s or %s", o.Routing, RoutingECMP, RoutingTwoLevel)
	}
	if spine := topology.NodeID(t.NumNodes() - 1); len(t.BouncingAddrs(spine)) > 1 {
		return fmt.Errorf("routing %s: in %s the spines choose a way down, too, so a host ID does not determine the path; use %s", o.Routing, t, RoutingECMP)
	}
	hosts, up := portsOf(t, t.EdgeOf(0))
	_, more := portsOf(t, t.Ports(t.EdgeOf(0))[hosts].Peer)
	up = max(up, more)
	switch {
	case up < 2:
		return fmt.Errorf("routing %s: the switches of %s have one port up each, so there is nothing to spread; use %s", o.Routing, t, RoutingECMP)
	case hosts < up:
		return fmt.Errorf("routing %s: in %s host IDs of a rack take %d values, and switches have %d ports up, of which some would stay idle; give racks %d hosts, or use %s",
			o.Routing, t, hosts, up, up, RoutingECMP)
	}
	return nil
}

// portsOf counts a switch's ports.
func portsOf(t *topology.Topology, id topology.NodeID) (down, up int) {
	for _, port := range t.Ports(id) {
		if port.Up {
			up++
		} else {
			down++
		}
	}
	return down, up
}

// planSuffixes adds the two levels to a switch that has ports up.
func (p *NodePlan) planSuffixes(t *topology.Topology, n topology.Node) {
	if n.Layer == topology.LayerHost {
		return
	}
	hosts, _ := portsOf(t, t.EdgeOf(0))
	for _, port := range t.Ports(n.ID) {
		if port.Up {
			g := len(p.Suffixes)
			p.Suffixes = append(p.Suffixes, SuffixGroup{Port: p.Ports[port.Index].Name, Mark: suffixBit | uint32(g), Table: suffixTableFirst + g})
		}
	}
	if len(p.Suffixes) == 0 {
		return
	}
	// The switch's number shifts the ports, so that racks send to hosts of the same ID by
	// different switches (thesis §3.1.5).
	shift := int(n.Addr.As4()[2])
	for id := firstHostID; id < firstHostID+hosts; id++ {
		g := &p.Suffixes[(id-firstHostID+shift)%len(p.Suffixes)]
		g.IDs = append(g.IDs, id)
	}
	p.Routes = append(p.Routes, p.twoLevels()...)
}

// twoLevels returns the routes of both levels, given those of the main table.
func (p NodePlan) twoLevels() (routes []Route) {
	for _, r := range p.Routes {
		if r.Table != 0 {
			continue
		}
		if len(r.Via) == 0 || len(r.Via) == 1 && r.Prefix.Bits() > 0 {
			r.Table = firstLevelTable
			routes = append(routes, r)
			continue
		}
		for i, g := range p.Suffixes {
			via := r.Via[i%len(r.Via)] // what a port that is dead leaves goes to the others (thesis §3.1.8)
			for _, hop := range r.Via {
				if hop.Port == g.Port {
					via = hop
				}
			}
			via.Weight, via.Group = 0, 0 // the table has no other
			routes = append(routes, Route{Table: g.Table, Prefix: r.Prefix, Via: []Hop{via}})
		}
	}
	return routes
}

func isSuffixTable(table int) bool {
	return table >= firstLevelTable && table < suffixTableFirst+maxSuffixGroups
}

// suffixRules returns the rules of both levels.
func (p NodePlan) suffixRules() (rules []rule) {
	if len(p.Suffixes) > 0 {
		rules = append(rules, rule{priority: firstLevelRule, mark: suffixBit, mask: suffixBit, table: firstLevelTable})
	}
	for _, g := range p.Suffixes {
		rules = append(rules, rule{priority: suffixRule, mark: g.Mark, mask: markMask, table: g.Table})
	}
	return rules
}

// groupOf returns the index of a host ID's group. Those that no host has have groups, too.
func groupOf(groups []SuffixGroup, id int) int {
	n := len(groups)
	return (id%n + groupOffset(groups)) % n
}

// groupOffset is the index of the group of host ID 0: after it they take turns.
func groupOffset(groups []SuffixGroup) int {
	n := len(groups)
	first := slices.IndexFunc(groups, func(g SuffixGroup) bool { return slices.Contains(g.IDs, firstHostID) })
	return ((first-firstHostID)%n + n) % n
}

// suffixCommands renders what gives packets their marks.
func (p NodePlan) suffixCommands() []string {
	if len(p.Suffixes) == 0 {
		return nil
	}
	var marks []string
	for id := range hostIDMask + 1 {
		marks = append(marks, fmt.Sprintf("%d : %#x", id, p.Suffixes[groupOf(p.Suffixes, id)].Mark))
	}
	return []string{
		"# Two-level tables: the last seven bits of the destination choose the table. The whole",
		"# mark of packets is overwritten. Undo: nft delete table ip weft_suffix",
		"nft add table ip weft_suffix",
		"nft 'add chain ip weft_suffix prerouting { type filter hook prerouting priority mangle; }'",
		"nft flush chain ip weft_suffix prerouting",
		fmt.Sprintf("nft 'add rule ip weft_suffix prerouting meta mark set @nh,153,7 map { %s }'", strings.Join(marks, ", ")),
	}
}
