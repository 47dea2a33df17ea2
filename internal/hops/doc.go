// Package hops walks all paths to a host, switch by switch: which switch answers, how many
// packets are lost as far as there, and how long the round trip takes.
//
// A packet walks its path in the outer header as far as the bouncing switch, and without it
// from there on. Neither header gets its TTL from the other (encap). So hops before the
// bouncing switch are found by the TTL of the outer header, that switch and those behind it by
// the TTL of the packet inside, and the path is the same each time. A switch that drops a
// packet since its TTL is used up says so by ICMP (RFC 792, 4443), and quotes the packet. The
// packets are requests of encap.Probe in data's class, which the target answers if it runs
// weft; otherwise its kernel says that nobody is at the port.
//
// Linux answers one address once a second, and six times in a row at most
// (net.ipv4.icmp_ratelimit, net.ipv6.icmp.ratelimit). So a Walk asks each switch no more often,
// and paths that share a switch ask it in turn.
//
// The package is pure: package walker has the sockets.
package hops

import (
	"errors"
	"fmt"
	"net/netip"

	"weft/encap"
	"weft/internal/paths"
	"weft/topology"
)

// Hop is a place of a path.
type Hop struct {
	Node   topology.NodeID // who is to answer
	Name   string
	Target bool // it is the host at the path's end
	Inner  bool // the TTL that ends here is that of the packet inside
	TTL    uint8
}

// Path is a way to the target.
type Path struct {
	Number int // -1: without an outer header, in the rack
	Via    string
	Uplink int // which of the host's uplinks it begins with
	Outer  encap.Outer
	Hops   []Hop
}

// Plan returns the paths from one host to another, and what to send to each hop.
func Plan(t *topology.Topology, c encap.Carrier, self, to netip.Addr) ([]Path, error) {
	from, ok := t.ByAddr(self)
	if !ok {
		return nil, fmt.Errorf("%v is no host of %s", self, t)
	}
	host, edge, ok := t.HostAt(to)
	switch {
	case !ok:
		return nil, fmt.Errorf("%v is no host of %s", to, t)
	case host == self:
		return nil, errors.New("the target is this host itself: name another")
	case c == encap.CarrierMPLS:
		return nil, errors.New("with MPLS switches do not tell whose TTL is used up: not supported")
	}
	set := t.Paths(from, edge)
	name := t.HostName(host)
	target := Hop{Name: name, Target: true, Inner: true}
	if set.Direct() {
		target.TTL = 64
		edge := Hop{Node: edge, Name: t.Node(edge).Name, Inner: true, TTL: 1}
		return []Path{{Number: -1, Hops: []Hop{edge, target}}}, nil
	}
	if len(set.Live) == 0 {
		return nil, fmt.Errorf("no live path to %v", to)
	}
	if c == encap.CarrierSRv6 {
		if err := paths.CheckSRv6(t); err != nil {
			return nil, err
		}
	}
	var all []Path
	for _, n := range set.Live {
		p := Path{Number: n, Via: t.Node(set.Bounce(n)).Name, Uplink: set.From(n), Outer: paths.Outer(t, c, self, set, n)}
		nodes := switches(t, set.Path(n).Hops)
		off := bounceAt(t, c, set, n, nodes)
		for i, node := range nodes {
			h := Hop{Node: node, Name: t.Node(node).Name, TTL: uint8(i + 1)}
			if i >= off {
				h.Inner, h.TTL = true, uint8(i-off+1)
			}
			p.Hops = append(p.Hops, h)
		}
		target.TTL = 64
		p.Hops = append(p.Hops, target)
		all = append(all, p)
	}
	return all, nil
}

// switches are a path's nodes without its hosts.
func switches(t *topology.Topology, nodes []topology.NodeID) (list []topology.NodeID) {
	for _, n := range nodes {
		if t.Node(n).Layer != topology.LayerHost {
			list = append(list, n)
		}
	}
	return list
}

// bounceAt is the place among a path's switches of the one that takes the outer header off.
func bounceAt(t *topology.Topology, c encap.Carrier, set topology.PathSet, n int, nodes []topology.NodeID) int {
	if c == encap.CarrierSRv6 && t.Computed() {
		return len(set.Choices(n)) // a label for each switch before
	}
	for i, node := range nodes {
		if node == set.Bounce(n) {
			return i
		}
	}
	return len(nodes)
}
