package bgp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"weft/topology"
	"weft/topology/graph"
)

// Views are a fabric as a host's addresses of both families see it.
type Views struct {
	Fabric  *topology.Topology // nil: nothing is known
	Fabric6 *topology.Topology // nil: the host or the fabric has no IPv6
}

// likeliest returns a host's addresses, those within a switch's prefixes first, then others that
// the graph has as a host's. Last come those that lie within what is behind a host, as the addresses of
// bridges for containers do.
func likeliest(g *graph.Graph, own []netip.Addr) []netip.Addr {
	rank := make(map[netip.Addr]int)
	for _, a := range own {
		if _, ok := g.ByAddr(a); !ok {
			rank[a] = 2
			continue
		}
		rank[a] = 1
		for id := graph.NodeID(g.NumHosts()); int(id) < g.NumNodes(); id++ {
			if slices.ContainsFunc(g.Node(id).Prefixes, func(p netip.Prefix) bool { return p.Contains(a) }) {
				rank[a] = 0
				break
			}
		}
	}
	list := slices.Clone(own)
	slices.SortStableFunc(list, func(a, b netip.Addr) int { return rank[a] - rank[b] })
	return list
}

// ViewsOf returns a graph as the first of a host's addresses of each family sees it that the
// graph has, those within a switch's prefixes first. It fails if it has none of IPv4. Without IPv6 at all bouncing switches there is
// none of IPv6.
func ViewsOf(g *graph.Graph, own []netip.Addr) (Views, error) {
	return viewsBy(g, own, topology.FromGraph)
}

// HeardViews is ViewsOf for what switches tell: see topology.FromHeard. It fails if they tell
// of no paths to any rack.
func HeardViews(g *graph.Graph, own []netip.Addr, sids bool) (Views, error) {
	return viewsBy(g, own, func(g *graph.Graph, self netip.Addr) (*topology.Topology, error) {
		t, err := topology.FromHeard(g, self, sids)
		if err == nil && !reaches(t) {
			err = errors.New("the switches announce no other rack yet")
		}
		return t, err
	})
}

// reaches reports whether there are paths to any rack.
func reaches(t *topology.Topology) bool {
	for edge := range t.Racks() {
		if !t.Paths(0, edge).Direct() {
			return true
		}
	}
	return false
}

func viewsBy(g *graph.Graph, own []netip.Addr, from func(*graph.Graph, netip.Addr) (*topology.Topology, error)) (v Views, err error) {
	for _, a := range likeliest(g, own) {
		id, ok := g.Behind(a)
		switch {
		case !ok || int(id) >= g.NumHosts():
		case a.Is6() && v.Fabric6 == nil:
			if t, err := from(g, a); err == nil {
				v.Fabric6 = t
			}
		case a.Is4() && v.Fabric == nil:
			if v.Fabric, err = from(g, a); err != nil {
				return Views{}, err
			}
		}
	}
	if v.Fabric == nil {
		return Views{}, fmt.Errorf("no host has one of the addresses %v that is IPv4", own)
	}
	return v, nil
}

// Within compares what a host goes by with what its switches tell now. left is v with those
// links down that they tell of no more, by family; a family that only one of the two has is
// missing. next is what to go by later: a family of which nothing is new is as in v. grown is
// true if next has more than v, or no IPv6 any more. IPv6 that v has not is in neither.
func (v Views) Within(now Views) (left, next Views, grown bool) {
	next = v
	var more bool
	if left.Fabric, more = v.Fabric.Within(now.Fabric); more {
		next.Fabric, grown = now.Fabric, true
	}
	switch {
	case v.Fabric6 != nil && now.Fabric6 != nil:
		if left.Fabric6, more = v.Fabric6.Within(now.Fabric6); more {
			next.Fabric6, grown = now.Fabric6, true
		}
	case v.Fabric6 != nil:
		next.Fabric6, grown = nil, true
	}
	return left, next, grown
}
