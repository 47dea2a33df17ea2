package testbed

import (
	"fmt"
	"net/netip"

	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// embeddedAddress returns the address of a host's own stack. It must be in a prefix of one of the
// host's edge switches: by these the other hosts know which paths lead to it.
func embeddedAddress(g *graph.Graph, host graph.NodeID) (netip.Addr, error) {
	n := g.Node(host)
	a := operator.Embedded(n, false)
	edge, rack := "", netip.Prefix{}
	for _, e := range g.Edges(host) {
		for _, p := range g.Node(e).Prefixes {
			switch {
			case a.IsValid() && p.Contains(a):
				return a, nil
			case p.Addr().Is4() && !rack.IsValid():
				edge, rack = g.Node(e).Name, p
			}
		}
	}
	switch {
	case !rack.IsValid():
		return a, fmt.Errorf("host %s: none of its edge switches has an IPv4 prefix: give one to each under prefixes, such as [192.168.1.0/26]", n.Name)
	case !a.IsValid():
		return a, fmt.Errorf("host %s has no address for a stack of its own: give it a free one of %s's %v under prefixes%s", n.Name, edge, rack, suchAs(g, rack))
	}
	return a, fmt.Errorf("host %s: prefixes has %v/32 for a stack of its own, which is not in %v of edge switch %s, so that other hosts know no paths to it: take a free address there%s",
		n.Name, a, rack, edge, suchAs(g, rack))
}

// suchAs names an address of a rack that nobody has, as an example: not the network's, which is the
// first, nor a gateway's, which is the next one, nor the last one. It is "" if it finds none soon.
func suchAs(g *graph.Graph, rack netip.Prefix) string {
	const most = 1 << 12
	a := rack.Addr().Next().Next()
	for range most {
		if !rack.Contains(a.Next()) {
			break
		}
		if owner, ok := g.Behind(a); ok && g.Node(owner).Tier > 0 {
			if _, own := g.ByAddr(a); !own {
				return fmt.Sprintf(", such as [%v/32]", a)
			}
		}
		a = a.Next()
	}
	return ""
}
