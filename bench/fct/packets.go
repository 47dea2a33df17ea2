package fct

import (
	"cmp"

	"weft/topology"
)

const (
	mss = 1460 // payload of a full packet without TCP options
	// headers are those of a packet: Ethernet, IPv4, TCP. The lab's links count them all.
	headers = 14 + 20 + 20
)

// hostsMbit is the lesser rate of the links of two hosts.
func hostsMbit(t *topology.Topology, src, dst topology.NodeID, rateMbit float64) float64 {
	of := func(h topology.NodeID) float64 { return cmp.Or(t.Rate(t.Ports(h)[0].Link), rateMbit) }
	return min(of(src), of(dst))
}
