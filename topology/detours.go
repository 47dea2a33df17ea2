package topology

import (
	"fmt"
	"net/netip"
	"slices"
)

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

// choice is how what is not encapsulated goes up to a rack.
type choice struct {
	list            uplinks // nil: it does not go up
	weights, groups []int   // as in Route
}

func (c choice) equal(d choice) bool {
	return slices.Equal(c.list, d.list) && slices.Equal(c.weights, d.weights) && slices.Equal(c.groups, d.groups)
}

// ups appends the default route, over all live uplinks, which begin at port first, and routes
// for the racks that are not reached as by the default route. That is as most of the racks are
// that are reached over all live uplinks. A pod all of whose racks are reached alike has one
// route, if it has a prefix.
func (r *routeBuilder) ups(first int, to func(pod, edge int) uplinks, capacity func(n, pod, edge int) float64) {
	t := r.t
	var live uplinks
	for _, i := range r.upPorts() {
		if t.Live(r.ports[i].Link) {
			live = append(live, i-first)
		}
	}
	usual := choice{list: live, weights: r.capacities.weights(live, func(n int) float64 { return r.capacities.upwards(r.at, n) })}
	var racks []choice // by pod and edge switch
	if !t.symmetric() {
		for i := range t.pods * t.edges {
			pod, e := i/t.edges, i%t.edges
			list := to(pod, e)
			racks = append(racks, choice{list, r.capacities.weights(list, func(n int) float64 { return capacity(n, pod, e) }), r.groups(list, pod, e)})
		}
		usual = mostOf(racks, usual)
	}
	if len(live) > 0 {
		r.addChoice(octets(0, 0, 0, 0), 0, first, usual)
	}
	for pod := 0; len(racks) > 0; pod++ {
		of := racks[:t.edges]
		racks = racks[t.edges:]
		alike := !t.flat()
		for _, c := range of {
			alike = alike && c.list != nil && c.equal(of[0])
		}
		for e, c := range of {
			if c.list == nil || c.equal(usual) {
				continue
			}
			if alike {
				r.addChoice(octets(10, pod, 0, 0), 16, first, c)
				break
			}
			r.addChoice(t.subnet(pod, e), 24, first, c)
		}
	}
}

// mostOf returns the most frequent of the choices that have all ports: of several usual or the
// first.
func mostOf(racks []choice, usual choice) choice {
	counts := make(map[string]int)
	most := 0
	best := usual
	for _, c := range racks {
		if len(c.list) != len(usual.list) {
			continue
		}
		key := fmt.Sprint(c.weights, c.groups)
		counts[key]++
		if n := counts[key]; n > most || n == most && c.equal(usual) {
			most, best = n, c
		}
	}
	return best
}

func (r *routeBuilder) addChoice(addr netip.Addr, bits, first int, c choice) {
	r.routes = append(r.routes, Route{Prefix: netip.PrefixFrom(addr, bits), Ports: c.list.ports(first), Weights: c.weights, Groups: c.groups, Drop: len(c.list) == 0 && r.silent})
}

func (u uplinks) ports(first int) []int {
	ports := make([]int, len(u))
	for i, n := range u {
		ports[i] = first + n
	}
	return ports
}
