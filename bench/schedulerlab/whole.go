package schedulerlab

import (
	"net/netip"

	"weft/hedera"
	"weft/internal/elephant"
	"weft/internal/scheduling"
	"weft/topology"
)

// Whole counts the flows that are pinned where they begin, and of these the ones whose whole path
// is: each switch behind the edge switch that has a choice of ports, too, has them pinned along
// the same path. nodes are what the fabric's nodes say, by their names.
func Whole(t *topology.Topology, nodes map[string]*scheduling.Status) (whole, pinned int, err error) {
	fabric, err := hedera.NewClos(t)
	if err != nil {
		return 0, 0, err
	}
	type at struct {
		node netip.Addr
		flow string
	}
	paths := make(map[at]int)
	for n := range t.Nodes() {
		if s := nodes[n.Name]; s != nil {
			for _, p := range s.Pinned {
				paths[at{n.Addr, p.Flow}] = p.Path
			}
		}
	}
	for pin, path := range paths {
		flow, err := elephant.ParseFlow(pin.flow)
		if err != nil {
			return 0, 0, err
		}
		tuple := scheduling.TupleOf(flow)
		src, ok := fabric.Host(tuple.Src.IP())
		if !ok || !fabric.Owns(pin.node, src) {
			continue // a switch behind it
		}
		pinned++
		all := true
		for _, relay := range fabric.Relays(hedera.Assignment{Node: pin.node, Tuple: tuple, Path: path}) {
			p, ok := paths[at{relay, pin.flow}]
			all = all && ok && p == path
		}
		if all {
			whole++
		}
	}
	return whole, pinned, nil
}
