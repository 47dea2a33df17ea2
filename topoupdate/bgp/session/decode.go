package session

import (
	"math"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	packet "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"weft/topology/graph"
	"weft/topoupdate/bgp"
)

// keyOf returns the key of a route; false if it is of none of the families.
func keyOf(p *apiutil.Path) (k bgp.Key, ok bool) {
	n, ok := p.Nlri.(*packet.IPAddrPrefix)
	if !ok || !n.Prefix.IsValid() {
		return k, false
	}
	return bgp.Key{Neighbor: p.PeerAddress, Prefix: n.Prefix.Masked(), ID: p.RemoteID}, true
}

// routeOf returns what a Table wants to know of a route.
func routeOf(attrs []packet.PathAttributeInterface) (r bgp.Route) {
	for _, a := range attrs {
		switch a := a.(type) {
		case *packet.PathAttributeAsPath:
			for _, part := range a.Value {
				r.Merged = r.Merged || part.GetType() != packet.BGP_ASPATH_ATTR_TYPE_SEQ
				r.ASPath = append(r.ASPath, part.GetAS()...)
			}
		case *packet.PathAttributeNextHop:
			r.NextHop = a.Value
		case *packet.PathAttributeMpReachNLRI:
			r.NextHop = a.Nexthop
		case *packet.PathAttributeExtendedCommunities:
			for _, c := range a.Value {
				if b, ok := c.(*packet.LinkBandwidthExtended); ok && r.Rate == 0 {
					r.Rate = rateOf(b.Bandwidth)
				}
			}
		}
	}
	return r
}

// rateOf turns what a community says (draft-ietf-idr-link-bandwidth), bytes per second, into
// Mbit/s; 0 if it is no rate.
func rateOf(bytes float32) float64 {
	rate := float64(bytes) * 8 / 1e6
	if !(rate > 0) || rate > graph.MaxRate {
		return 0
	}
	if whole := math.Round(rate); math.Abs(rate-whole) < whole*1e-6 {
		return whole // what a float32 has lost
	}
	return rate
}
