package fluid

import (
	"weft/hedera"
	"weft/topology"
)

// Pair is the two ends of a flow.
type Pair = hedera.Pair

// Hash is static multipathing by a hash: equal keys take equal paths.
type Hash struct {
	Fabric *Fabric
	Key    HashKey
	Seed   uint64
}

// HashKey says what a Hash hashes.
type HashKey uint8

// The keys.
const (
	// ByFlow is of the five-tuple: two flows of a pair may differ.
	ByFlow HashKey = iota
	// ByDestination is of the destination's address (thesis §4.4.2).
	ByDestination
	// ByPod is the destination's pod only, as if a switch had one route for each prefix:
	// no multipathing within a prefix.
	ByPod
)

// Path returns the path of the nth flow.
func (h *Hash) Path(p Pair, nth uint64) int {
	key := nth<<1 | 1
	switch h.Key {
	case ByDestination:
		key = uint64(p.Dst) << 1
	case ByPod:
		key = uint64(h.Fabric.Pod(p.Dst)) << 1
	}
	return int(mix(h.Seed^mix(key)) % uint64(h.Fabric.Paths(p.Src, p.Dst)))
}

// mix is splitmix64's finaliser.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// TwoLevel returns the path that two-level routing tables give a pair: on the way up a
// switch takes the port (destination's host number + switch's own number) modulo its
// ports up (thesis §3.1.5, Fig. 3.5 and 3.6).
func (f *Fabric) TwoLevel(p Pair) int {
	if f.Paths(p.Src, p.Dst) == 1 {
		return 0
	}
	id := f.inRack(p.Dst)
	g := (id + f.inPod(f.rack[p.Src])) % f.aggs
	if f.Pod(p.Src) == f.Pod(p.Dst) {
		return g
	}
	// Aggregation switch g has number aggs+g (thesis §3.1.2).
	return g*f.cores + (id+f.aggs+g)%f.cores
}

// Pod returns the number of a host's pod.
func (f *Fabric) Pod(h topology.NodeID) int { return int(f.edges[f.rack[h]].pod) }

// Rack returns the number of a host's edge switch.
func (f *Fabric) Rack(h topology.NodeID) int { return int(f.rack[h]) }

// inRack returns which of its rack's hosts one is.
func (f *Fabric) inRack(h topology.NodeID) int { return int(h) % (f.hosts / len(f.edges)) }

// inPod returns which of its pod's an edge switch is.
func (f *Fabric) inPod(rack int32) int { return int(rack) % (len(f.edges) / f.pods) }
