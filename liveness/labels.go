package liveness

import (
	"net/netip"

	"weft/topology"
)

// Labels finds the way of probes that are carried by labels, output ports, rather
// than to Probe.Via. The zero value with its two fields set is ready. It is not safe
// for concurrent use.
type Labels struct {
	Topology *topology.Topology // whichever links are down: paths keep their labels
	Self     topology.NodeID

	distant []topology.NodeID    // nil until needed
	around  map[netip.Addr][]int // round trips, by bouncing address
}

// Of returns the output ports at the switches from the host's edge switch on that a
// probe passes before one of them is to take its labels off; false if it has no such
// path. The caller must not write to them.
func (l *Labels) Of(p *Probe) (ports []int, ok bool) {
	if p.Dst != l.Self {
		set := l.Topology.Paths(l.Self, p.Dst)
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

// findDistant looks at all hosts for one of each kind that a host's paths differ by:
// of another rack of its pod, and of another pod, as far as there are.
func (l *Labels) findDistant() {
	seen := 0
	for h := topology.NodeID(0); int(h) < l.Topology.NumHosts(); h++ {
		if n := len(l.Topology.Paths(l.Self, h).Bases); n > 0 && seen&(1<<n) == 0 {
			seen |= 1 << n
			l.distant = append(l.distant, h)
		}
	}
}
