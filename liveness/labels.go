package liveness

import (
	"net/netip"
	"slices"

	"weft/encap"
	"weft/topology"
)

// Labels finds the output ports for probes that labels carry, in place of Probe.Via. The
// zero value with its two exported fields set is ready. It is not safe for concurrent
// use.
type Labels struct {
	Topology *topology.Topology // links that are down do not matter: paths keep their labels
	Self     topology.NodeID

	distant []topology.NodeID    // racks; nil until needed
	around  map[netip.Addr][]int // round trips, by bouncing address
}

// Of returns the output ports of a probe's way, from the host's edge switch on, up to the
// switch that takes the labels off. ok is false if the probe has no such path. The caller
// must not write to ports.
func (l *Labels) Of(p *Probe) (ports []int, ok bool) {
	if p.Kind() != encap.Boomerang {
		set := l.Topology.PathsTo(l.Self, p.Dst)
		if p.Path >= set.Count() {
			return nil, false
		}
		return set.Choices(p.Path), true
	}
	if l.around == nil {
		l.around = make(map[netip.Addr][]int)
		l.findDistant()
	}
	ports, ok = l.around[p.Via]
	if !ok {
		if ports, ok = l.roundTrip(p.Via); ok {
			l.around[p.Via] = ports
		}
	}
	return ports, ok
}

// roundTrip leads up to the switch with a bouncing address, and on to where only one
// way leads back to the host. A path has the same number in both directions, and as
// many labels up as down.
func (l *Labels) roundTrip(via netip.Addr) (ports []int, ok bool) {
	for _, peer := range l.distant {
		there, back := l.Topology.Paths(l.Self, peer), l.Topology.Paths(peer, l.Self)
		for n := range there.Count() {
			if there.Addr(n) == via {
				up := there.Labels(n)
				up = up[: len(up)/2 : len(up)/2]
				return append(up, back.Choices(n)[len(up):]...), true
			}
		}
	}
	return nil, false
}

// findDistant finds one rack of each kind that needs a path.
func (l *Labels) findDistant() {
	var kinds []topology.PathSet
	for edge := range l.Topology.Racks() {
		set := l.Topology.Paths(l.Self, edge)
		if !set.Direct() && !slices.ContainsFunc(kinds, set.Like) {
			kinds, l.distant = append(kinds, set), append(l.distant, edge)
		}
	}
}
