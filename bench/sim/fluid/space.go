package fluid

import (
	"weft/hedera"
	"weft/topology"
)

// A Fabric is a hedera.Space.
var _ hedera.Space = (*Fabric)(nil)

// HostRate is hedera.Network's.
func (f *Fabric) HostRate() float64 { return f.capacity[0] }

// AppendRoute is hedera.Network's.
func (f *Fabric) AppendRoute(list []hedera.Use, src, dst topology.NodeID, path int) []hedera.Use {
	r := f.Route(src, dst, path)
	for _, p := range between(&r) {
		list = append(list, hedera.Use{Port: p, Share: hedera.Whole})
	}
	return list
}

// between returns a route's ports without those of the hosts' links.
func between(r *Route) []int32 { return r.ports[1 : r.n-1] }

// Layout is hedera.Space's. Hosts are numbered rack after rack, pod after pod.
func (f *Fabric) Layout() hedera.Layout {
	l := hedera.Layout{Choices: f.aggs * max(f.cores, 1), Stride: max(f.cores, 1)}
	if f.spread {
		l.Choices, l.Stride = 1, 1
	}
	racks := len(f.edges) / f.pods
	host := topology.NodeID(0)
	for range f.pods {
		pod := make([][]topology.NodeID, racks)
		for r := range pod {
			for range f.hosts / len(f.edges) {
				pod[r] = append(pod[r], host)
				host++
			}
		}
		l.Pods = append(l.Pods, pod)
	}
	return l
}

// PathBy is hedera.Space's: between pods a choice is a path, within a pod the aggregation
// switch of that path.
func (f *Fabric) PathBy(src, dst topology.NodeID, choice int) int {
	switch {
	case f.rack[src] == f.rack[dst]:
		return 0
	case f.Pod(src) == f.Pod(dst) && !f.spread:
		return choice / max(f.cores, 1)
	}
	return choice
}

// ChoiceOf is hedera.Space's.
func (f *Fabric) ChoiceOf(src, dst topology.NodeID, path int) int {
	if f.Pod(src) == f.Pod(dst) && !f.spread {
		return path * max(f.cores, 1)
	}
	return path
}
