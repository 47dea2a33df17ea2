package topology

import "slices"

// uplinks are choices on the way up, ascending: aggregation switches of a pod
// or cores of a group. nil means that the question does not arise.
type uplinks []int

// edgeUplinks returns the aggregation switches over which what is not
// encapsulated gets from an edge switch to a rack, nil for its own.
func (t *Topology) edgeUplinks(p position, pod, edge int) uplinks {
	if p.pod == pod && p.sw == edge {
		return nil
	}
	list := make(uplinks, 0, t.aggs)
	for g := range t.aggs {
		if t.Live(t.edgeLink(p.pod, p.sw, g)) && t.aggReaches(p.pod, g, pod, edge) {
			list = append(list, g)
		}
	}
	return list
}

// aggReaches reports whether an aggregation switch has a way to a rack.
func (t *Topology) aggReaches(from, g, pod, edge int) bool {
	if from == pod {
		return t.Live(t.edgeLink(pod, edge, g))
	}
	for c := range t.cores {
		if t.Live(t.coreLink(from, g, c)) && t.coreReaches(g, c, pod, edge) {
			return true
		}
	}
	return false
}

// aggUplinks returns the cores over which what is not encapsulated gets from
// an aggregation switch to a rack of another pod.
func (t *Topology) aggUplinks(p position, pod, edge int) uplinks {
	list := make(uplinks, 0, t.cores)
	for c := range t.cores {
		if t.Live(t.coreLink(p.pod, p.sw, c)) && t.coreReaches(p.sw, c, pod, edge) {
			list = append(list, c)
		}
	}
	return list
}

// coreReaches reports whether a core has a way down to a rack. A spine of VL2
// may send it by any aggregation switch of the rack's group.
func (t *Topology) coreReaches(group, core, pod, edge int) bool {
	if t.virtual() == 1 {
		return t.Live(t.coreLink(pod, group, core)) && t.Live(t.edgeLink(pod, edge, group))
	}
	for v := range t.virtual() {
		if t.Live(t.coreLink(pod, v, core)) && t.Live(t.edgeLink(pod, edge, v)) {
			return true
		}
	}
	return false
}

// detours appends routes for the racks that are not reached over all the live
// uplinks, which begin at port first, or over these in other proportions than those of the
// default route. A pod all of whose racks are reached alike has one route, if it has a prefix.
func (r *routeBuilder) detours(first int, to func(pod, edge int) uplinks, capacity func(n, pod, edge int) float64) {
	t := r.t
	if t.symmetric() {
		return
	}
	usual, usualWeights := r.usual(first)
	racks, weights := make([]uplinks, t.edges), make([][]int, t.edges)
	for pod := range t.pods {
		alike := !t.flat()
		for e := range racks {
			racks[e] = to(pod, e)
			weights[e] = r.capacities.weights(racks[e], func(n int) float64 { return capacity(n, pod, e) })
			alike = alike && racks[e] != nil && slices.Equal(racks[e], racks[0]) && slices.Equal(weights[e], weights[0])
		}
		for e, list := range racks {
			if list == nil || len(list) == len(usual) && slices.Equal(weights[e], usualWeights) { // all of them: there are no others
				continue
			}
			if alike {
				r.addWeighted(octets(10, pod, 0, 0), 16, list.ports(first), weights[e])
				break
			}
			r.addWeighted(t.subnet(pod, e), 24, list.ports(first), weights[e])
		}
	}
}

func (u uplinks) ports(first int) []int {
	ports := make([]int, len(u))
	for i, n := range u {
		ports[i] = first + n
	}
	return ports
}
