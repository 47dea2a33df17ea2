package paths

import (
	"net/netip"

	"weft/topology"
)

// EdgeOf returns the edge switch of a host.
func EdgeOf(t *topology.Topology, host topology.NodeID) topology.NodeID {
	return t.Ports(host)[0].Peer
}

// RackBits is the length of a rack's prefix (thesis §3.1.2).
const RackBits = 24

// PrefixOf returns the prefix of the rack that has an IPv4 address.
func PrefixOf(a netip.Addr) netip.Prefix {
	p, _ := a.Prefix(RackBits)
	return p
}
