package schedulerlab

import (
	"fmt"
	"net/netip"

	"weft/flowcell"
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
		tuple, err := tupleOf(pin.flow)
		if err != nil {
			return 0, 0, err
		}
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

// tupleOf reads a flow as elephant.Flow prints it.
func tupleOf(flow string) (t flowcell.FiveTuple, err error) {
	var protocol, from, to string
	if _, err := fmt.Sscanf(flow, "%s %s > %s", &protocol, &from, &to); err != nil {
		return t, fmt.Errorf("flow %q: %w", flow, err)
	}
	src, err := netip.ParseAddrPort(from)
	if err != nil {
		return t, fmt.Errorf("flow %q: %w", flow, err)
	}
	dst, err := netip.ParseAddrPort(to)
	if err != nil {
		return t, fmt.Errorf("flow %q: %w", flow, err)
	}
	t = flowcell.FiveTuple{Src: flowcell.AddressFrom(src.Addr()), Dst: flowcell.AddressFrom(dst.Addr()), SrcPort: src.Port(), DstPort: dst.Port(), Proto: elephant.TCP}
	if protocol == "udp" {
		t.Proto = elephant.UDP
	}
	return t, nil
}
