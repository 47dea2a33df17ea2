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

// linksBetween is the number of links between two hosts; of one host with itself, as a job's, it is
// that of the first host and the last, which are far apart.
func linksBetween(t *topology.Topology, src, dst topology.NodeID) int {
	if src == dst {
		src, dst = 0, topology.NodeID(t.NumHosts()-1)
	}
	if t.EdgeOf(src) == t.EdgeOf(dst) {
		return 2
	}
	return len(t.PathsOrAll(src, dst).Path(0).Links)
}

// hostsMbit is the lesser rate of the links of two hosts.
func hostsMbit(t *topology.Topology, src, dst topology.NodeID, rateMbit float64) float64 {
	of := func(h topology.NodeID) float64 { return cmp.Or(t.Rate(t.Ports(h)[0].Link), rateMbit) }
	return min(of(src), of(dst))
}
