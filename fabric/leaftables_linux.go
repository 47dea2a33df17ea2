package fabric

import (
	"fmt"
	"net/netip"

	"weft/internal/balance"
	"weft/topology"
)

// leafTables are the prefixes of all racks and the paths to others, as bpf/leaf.c has them.
type leafTables struct {
	prefixes map[destination]uint32
	racks    map[uint32]*balance.LeafRack
	edges    []topology.NodeID // by number of rack
}

// ownRack is the number of the switch's own rack.
const ownRack = 1<<32 - 1

// tables are the same for any two topologies that differ in links that are down, but for the
// live paths.
func (l LeafConfig) tables() (leafTables, error) {
	if err := l.check(); err != nil {
		return leafTables{}, err
	}
	t := leafTables{prefixes: make(map[destination]uint32), racks: make(map[uint32]*balance.LeafRack)}
	self := l.Topology.FirstHost(l.Self)
	for edge := range l.Topology.Racks() {
		number := uint32(len(t.edges))
		t.edges = append(t.edges, edge)
		if edge == l.Self {
			t.add(l.Topology.RackPrefixesOf(edge, false), ownRack)
			continue
		}
		set := l.Topology.Paths(self, edge)
		if set.Direct() {
			continue
		}
		if number >= balance.MaxLeafRacks {
			return t, fmt.Errorf("%v has more than %d racks", l.Topology, balance.MaxLeafRacks)
		}
		var live []balance.LeafPath
		for _, n := range set.Live {
			live = append(live, balance.LeafPath{Number: n, Uplink: set.Uplink(n), Bounce: set.Addr(n)})
		}
		r, err := balance.NewLeafRack(number, set.Count(), live)
		if err != nil {
			return t, err
		}
		t.racks[number] = r
		t.add(l.Topology.RackPrefixesOf(edge, false), number)
	}
	return t, nil
}

func (t *leafTables) add(prefixes []netip.Prefix, number uint32) {
	for _, p := range prefixes {
		t.prefixes[destination{uint32(p.Bits()), p.Addr().As4()}] = number
	}
}
