package bgp

import (
	"fmt"
	"net/netip"
	"time"

	"weft/topology"
	"weft/topology/graph"
)

// Views are a fabric as a host's addresses of both families see it.
type Views struct {
	Fabric  *topology.Topology // nil: nothing is known
	Fabric6 *topology.Topology // nil: the host or the fabric has no IPv6
}

// ViewsOf returns a graph as the first of a host's addresses of each family sees it that the
// graph has. It fails if it has none of IPv4. Without IPv6 at all bouncing switches there is
// none of IPv6.
func ViewsOf(g *graph.Graph, own []netip.Addr) (v Views, err error) {
	for _, a := range own {
		id, ok := g.Behind(a)
		switch {
		case !ok || int(id) >= g.NumHosts():
		case a.Is6() && v.Fabric6 == nil:
			v.Fabric6, _ = topology.FromGraph(g, a)
		case a.Is4() && v.Fabric == nil:
			if v.Fabric, err = topology.FromGraph(g, a); err != nil {
				return Views{}, err
			}
		}
	}
	if v.Fabric == nil {
		return Views{}, fmt.Errorf("no host has one of the addresses %v that is IPv4", own)
	}
	return v, nil
}

// Within compares what a host goes by with what its switches tell now. It returns v with those
// links down that they tell of no more, by family; a family that only one of the two has is
// missing. grown is true if they tell of more, or not of IPv6 any more.
func (v Views) Within(now Views) (left Views, grown bool) {
	left.Fabric, grown = v.Fabric.Within(now.Fabric)
	switch {
	case v.Fabric6 != nil && now.Fabric6 != nil:
		var grown6 bool
		left.Fabric6, grown6 = v.Fabric6.Within(now.Fabric6)
		grown = grown || grown6
	case v.Fabric6 != nil:
		grown = true
	}
	return left, grown
}

// GrowAfter is how long what is new in a fabric is held back. A new fabric is proved anew,
// which has packets go plain for a moment, and news come in bursts.
const GrowAfter = time.Second

// Growth is what is new in a fabric, and held back. The zero value is that nothing is.
type Growth struct {
	to  Views
	due time.Time
}

// Hear takes what the switches tell now, and whether that is more than the host goes by. It
// is due GrowAfter the first news that there is more, however often they come.
func (g *Growth) Hear(now time.Time, to Views, grown bool) {
	if !grown {
		*g = Growth{}
	} else if g.to = to; g.due.IsZero() {
		g.due = now.Add(GrowAfter)
	}
}

// Due is when Take has something; the zero Time: nothing is held back.
func (g *Growth) Due() time.Time { return g.due }

// Take returns what to go by from now on, when it is due.
func (g *Growth) Take(now time.Time) (to Views, ok bool) {
	if g.due.IsZero() || now.Before(g.due) {
		return Views{}, false
	}
	to = g.to
	*g = Growth{}
	return to, true
}
