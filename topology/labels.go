package topology

import (
	"fmt"
)

// Count returns how many paths the pair has, live or not: the numbers of paths
// are 0 to Count-1. It is 0 for a pair that is Direct.
func (s PathSet) Count() int {
	if s.rack != nil && s.rack.list != nil {
		return len(s.rack.list.paths)
	}
	if s.Direct() {
		return 0
	}
	n := 1
	for _, base := range s.Bases {
		n *= base
	}
	return n
}

// Labels returns path number n of the set, live or not, as a source route (Luopan §3.3):
// the output port, a Port.Index, at each switch, the source's edge switch first, up to the
// one before the destination's edge switch. There are four labels between pods, two within
// a pod, and none for a pair that is Direct. n is the path's ID and must be below Count.
// The slice is the caller's. It is nil where the fabric is data: see CheckPorts.
func (s PathSet) Labels(n int) []int {
	if s.Direct() || s.rack != nil {
		return nil
	}
	t, via := s.t, s.bounce(n)
	if via.layer == LayerAgg {
		return []int{t.hosts + via.sw, s.dst.sw}
	}
	return []int{t.hosts + via.pod, t.edges + via.sw, t.corePort(s.dst.pod, via.pod), s.dst.sw}
}

// Choices returns the labels of path number n as far as there is a choice. Behind the
// last of them, routes lead to the destination's rack only along the path, whichever
// links are down. That place is the bouncing switch. In VL2 it is the aggregation switch
// behind it, since a spine is several virtual ones and its routes do not know from which
// one a packet comes. The node there can take the labels off, so the rest of the way is
// without their overhead. The slice is the caller's.
func (s PathSet) Choices(n int) []int {
	labels := s.Labels(n)
	if labels == nil {
		return nil
	}
	end := len(labels) / 2
	if end > 1 && s.t.virtual() > 1 {
		end++
	}
	return labels[:end:end]
}

// CheckPorts returns an error that names a switch with more than limit ports. A
// carrier whose labels are ports can name only so many.
func (t *Topology) CheckPorts(limit int) error {
	if t.view != nil {
		return fmt.Errorf("topology: the ports of switches are not known in %s: take another carrier than labels", t.spec)
	}
	for _, of := range []struct {
		p     position
		ports int
	}{
		{position{layer: LayerEdge}, t.hosts + t.aggs},
		{position{layer: LayerAgg}, t.edges + t.cores},
		{position{layer: LayerCore}, t.pods * t.virtual()}, // without cores 1, as there is one pod
	} {
		if of.ports > limit {
			return fmt.Errorf("topology: switch %s of %s has %d ports, but labels name only %d: take a smaller fabric or another carrier",
				t.name(of.p), t.spec, of.ports, limit)
		}
	}
	return nil
}
