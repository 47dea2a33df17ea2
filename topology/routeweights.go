package topology

import (
	"math"
	"slices"
)

// maxRouteWeight is the greatest weight of a next hop. Others are rounded to the nearest
// whole number, but to no less than 1. So what a next hop gets differs from its part of the
// capacity by half of 1/16 of the largest part, and by 1/16 if its own part is less than that.
const maxRouteWeight = 16

// Weighted returns the ports, each as often as it weighs. It must not be changed.
func (r Route) Weighted() []int { return repeat(r.Ports, r.Weights) }

// capacities are how much of a rack's traffic the ports of a switch can carry, for weighted
// cost multipathing (Zhou et al., WCMP, EuroSys 2014): the least of what the link up and what
// all links behind it can carry. A link between an aggregation switch and a core counts as
// shared by all racks that are below the aggregation switch. So of a fat-tree's aggregation
// switches one that has lost half of its cores gets half as much, though the rack's own link
// to it is whole. It is nil where all are equal: with no link down and no rate of its own.
//
// The unit is Mbit/s. Links are equal where no rates are known. If the rates of one layer are
// known, links of the other are faster than any.
type capacities struct {
	t     *Topology
	below []int // by pod and group: the racks below an aggregation switch
	cores []int // likewise: its live links up
	other float64
}

func (t *Topology) capacitiesOfPorts() *capacities {
	if t.symmetric() {
		return nil
	}
	c := &capacities{t: t, below: make([]int, t.pods*t.aggs), cores: make([]int, t.pods*t.aggs), other: 1}
	if t.rates != nil && (t.rates.layer[1] != 0 || t.rates.layer[2] != 0) {
		c.other = math.Inf(1)
	}
	for pod := range t.pods {
		for g := range t.aggs {
			for e := range t.edges {
				if t.Live(t.edgeLink(pod, e, g)) {
					c.below[pod*t.aggs+g]++
				}
			}
			for core := range t.cores {
				if t.Live(t.coreLink(pod, g, core)) {
					c.cores[pod*t.aggs+g]++
				}
			}
		}
	}
	return c
}

func (c *capacities) rate(l LinkID) float64 {
	if r := c.t.Rate(l); r != 0 {
		return r
	}
	return c.other
}

// share is a rack's of an aggregation switch's link to a core.
func (c *capacities) share(pod, g, core int) float64 {
	return c.rate(c.t.coreLink(pod, g, core)) / float64(max(1, c.below[pod*c.t.aggs+g]))
}

// ofEdge is from an edge switch over one of its aggregation switches to a rack, which must
// be reached that way.
func (c *capacities) ofEdge(p position, g, pod, edge int) float64 {
	t, up := c.t, c.rate(c.t.edgeLink(p.pod, p.sw, g))
	if p.pod == pod {
		return min(up, c.rate(t.edgeLink(pod, edge, g)))
	}
	beyond := 0.0
	for core := range t.cores {
		if t.Live(t.coreLink(p.pod, g, core)) && t.coreReaches(g, core, pod, edge) {
			beyond += min(c.share(p.pod, g, core), c.down(g, core, pod, edge, c.share))
		}
	}
	if t.virtual() == 1 {
		beyond = min(beyond, c.rate(t.edgeLink(pod, edge, g)))
	}
	return min(up, beyond)
}

// ofAgg is from an aggregation switch over one of its cores to a rack of another pod.
func (c *capacities) ofAgg(p position, core, pod, edge int) float64 {
	whole := func(pod, g, core int) float64 { return c.rate(c.t.coreLink(pod, g, core)) }
	return min(whole(p.pod, p.sw, core), c.down(p.sw, core, pod, edge, whole))
}

// down is of a core's links to a pod, by which it reaches a rack: of a spine of VL2 several.
func (c *capacities) down(group, core, pod, edge int, of func(pod, g, core int) float64) (sum float64) {
	if c.t.virtual() == 1 {
		return of(pod, group, core)
	}
	for v := range c.t.virtual() {
		if c.t.Live(c.t.coreLink(pod, v, core)) && c.t.Live(c.t.edgeLink(pod, edge, v)) {
			sum += of(pod, v, core)
		}
	}
	return sum
}

// ofSpine is from a spine of VL2 over one of a rack's aggregation switches.
func (c *capacities) ofSpine(v, core, pod, edge int) float64 {
	return min(c.share(pod, v, core), c.rate(c.t.edgeLink(pod, edge, v))/float64(max(1, c.cores[pod*c.t.aggs+v])))
}

// upwards is of one of a switch's ports up, whatever the destination.
func (c *capacities) upwards(p position, n int) float64 {
	if p.layer == LayerAgg {
		return c.rate(c.t.coreLink(p.pod, p.sw, n))
	}
	up := c.rate(c.t.edgeLink(p.pod, p.sw, n))
	if c.t.cores == 0 {
		return up
	}
	beyond := 0.0
	for core := range c.t.cores {
		if c.t.Live(c.t.coreLink(p.pod, n, core)) {
			beyond += c.share(p.pod, n, core)
		}
	}
	return min(up, beyond)
}

// weights returns those of choices on the way up, by their capacity; nil if they are equal.
func (c *capacities) weights(list uplinks, capacity func(n int) float64) []int {
	if c == nil || len(list) < 2 {
		return nil
	}
	rates := make([]float64, len(list))
	for i, n := range list {
		rates[i] = capacity(n)
	}
	if slices.Max(rates) == 0 {
		return nil
	}
	return weighUpTo(maxRouteWeight, rates)
}
