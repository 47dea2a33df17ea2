package policy

import (
	"weft/drb"
	"weft/flowcell"
)

// AtUplink reports whether the program at a host's uplink can carry out the policy, so
// that super-segments leave the host whole. Otherwise the dataplane carries it out in
// userspace. All code asks this one function.
func (p Policy) AtUplink() bool { return p.UplinkLacks() == "" }

// UplinkLacks says, for an error, what the program at the uplink would have to know to
// carry out the policy; "" if it lacks nothing. The program remembers each flow's
// flowcell, or flowlet, one path for each rack that it is told, and what hosts report to it.
func (p Policy) UplinkLacks() string {
	inTurn := p.Rule == drb.DigitReversal || p.Rule == drb.RoundRobin
	switch unit := p.Unit.Kind; {
	case p.Aware == Backlogged:
		return "what was sent by each path, and when"
	case p.Aware == Heeding:
		return "what became of each flow's packets"
	case p.Groups:
		return "the group of paths of each flow"
	case (p.Aware == Oblivious || p.Aware == Sampled) && unit == flowcell.UnitFlowcell && p.Rule == drb.Random,
		(p.Aware == Oblivious || p.Aware == Informed) && unit == flowcell.UnitFlowlet && p.Rule == drb.Random,
		p.Aware == Oblivious && unit == flowcell.UnitFlow && p.Rule == drb.Hash,
		p.Aware == Oblivious && unit == flowcell.UnitFlowcell && inTurn,
		p.Aware == Oblivious && unit == flowcell.UnitPacket && (inTurn || p.Rule == drb.Random):
		return ""
	}
	return "state of its own"
}

// NamesAtUplink lists the policies that the program at the uplink can carry out, in
// the order of the table.
func NamesAtUplink() (names []string) {
	for _, p := range table {
		if p.AtUplink() {
			names = append(names, p.Name)
		}
	}
	return names
}
