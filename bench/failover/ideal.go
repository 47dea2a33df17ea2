package failover

import (
	"cmp"
	"math"

	"weft/bench/permutation"
	"weft/topology"
)

// Payload is TCP's payload as a share of a full frame. Rates count 1514 bytes a frame: 14
// are Ethernet's, 20 the outer header's, and 40 those of IP and TCP without options.
const Payload = 1440.0 / 1514

// Ideal is the max-min fair goodput, in Mbit/s, of streams from each host i to host
// to[i]. Each stream is spread over the live paths of its pair by weight, on links of
// rateMbit where the topology gives no rate of its own. No transport that spreads evenly
// can beat it. It leaves out acknowledgements.
//
// All streams grow at the same speed; those that meet a full link stop (Bertsekas and
// Gallager, Data Networks, §6.5.2).
func Ideal(t *topology.Topology, to []topology.NodeID, rateMbit float64) []float64 {
	return IdealOf(t, permutation.Streams(to), rateMbit)
}

// IdealOf is Ideal for any streams.
func IdealOf(t *topology.Topology, streams []permutation.Stream, rateMbit float64) []float64 {
	shares := make([]map[direction]float64, len(streams)) // of each stream on each link
	capacity := make(map[direction]float64)
	for i, s := range streams {
		shares[i] = linkShares(t, s.From, s.To)
		for d := range shares[i] {
			capacity[d] = cmp.Or(t.Rate(d.link), rateMbit)
		}
	}
	goodput := fill(shares, capacity)
	for i := range goodput {
		goodput[i] *= Payload
	}
	return goodput
}

// direction is one of the two of a link.
type direction struct {
	link topology.LinkID
	up   bool
}

// linkShares is how much of a stream each link carries, of 1; empty if the pair
// is cut off.
func linkShares(t *topology.Topology, src, dst topology.NodeID) map[direction]float64 {
	shares := make(map[direction]float64)
	paths := pathsOf(t, src, dst)
	for _, p := range paths {
		for i, l := range p.Links {
			shares[direction{l, t.Link(l).A == p.Hops[i]}] += 1 / float64(len(paths))
		}
	}
	return shares
}

// pathsOf are the ways of a pair, each as often as it weighs.
func pathsOf(t *topology.Topology, src, dst topology.NodeID) (paths []topology.Path) {
	set := t.Paths(src, dst)
	if set.Direct() {
		if p, err := t.Path(src, dst, t.EdgeOf(src)); err == nil {
			paths = append(paths, p)
		}
		return paths
	}
	for _, n := range set.Weighted() {
		paths = append(paths, set.Path(n))
	}
	return paths
}

// fill is progressive filling: it returns the rate of each stream.
func fill(shares []map[direction]float64, capacity map[direction]float64) []float64 {
	rate, frozen := make([]float64, len(shares)), make([]bool, len(shares))
	for i := range shares {
		frozen[i] = len(shares[i]) == 0
	}
	for {
		load := make(map[direction]float64) // what a rise of 1 in all streams adds
		for i, s := range shares {
			if !frozen[i] {
				for d, x := range s {
					load[d] += x
				}
			}
		}
		if len(load) == 0 {
			return rate
		}
		rise := math.Inf(1)
		for d, x := range load {
			rise = min(rise, capacity[d]/x)
		}
		for d, x := range load {
			capacity[d] -= rise * x
		}
		for i, s := range shares {
			if frozen[i] {
				continue
			}
			rate[i] += rise
			for d := range s {
				frozen[i] = frozen[i] || capacity[d] < 1e-9
			}
		}
	}
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}
