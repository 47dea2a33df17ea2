package fct

import (
	"cmp"
	"math"
	"time"

	"weft/topology"
)

const (
	mss = 1460 // payload of a full packet without TCP options
	// headers are those of a packet: Ethernet, IPv4, TCP. The lab's links count them all.
	headers = 14 + 20 + 20
	// burst is how many bytes a lab's link passes at once when it has been idle (lab.Config
	// BurstBytes). Links add no other delay, so a link is a fluid and not a store.
	burst = 3200
)

// ideal is how long a flow takes that is alone in the fabric: base, and the bytes beyond burst
// at the rate of the hosts' links, as if there were neither slow start nor TCP options. base
// is what a flow of one byte takes: two round trips, and the programs.
func ideal(bytes int64, mbit float64, base time.Duration) time.Duration {
	wire := bytes + (bytes+mss-1)/mss*headers
	micros := float64(max(0, wire-burst)) * 8 / mbit
	return base + time.Duration(math.Round(micros*float64(time.Microsecond)))
}

// hostsMbit is the lesser rate of the links of two hosts.
func hostsMbit(t *topology.Topology, src, dst topology.NodeID, rateMbit float64) float64 {
	of := func(h topology.NodeID) float64 { return cmp.Or(t.Rate(t.Ports(h)[0].Link), rateMbit) }
	return min(of(src), of(dst))
}
