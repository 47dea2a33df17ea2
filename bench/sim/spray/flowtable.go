package spray

import "weft/topology"

// flowEntry is what a switch remembers of a flow.
type flowEntry struct {
	hash uint64
	used int64 // when, by a clock that is the owner's; -1: the entry is free
	left int32 // bytes of the flowcell under way, where the switch cuts
	port int16
	cell uint16 // number of the flowcell under way, where hosts cut
}

// ways is in how many places a flow can be.
const ways = 8

// flowTables are those of all switches: each set-associative, so that of flows that
// meet in a full set the idlest is forgotten.
type flowTables struct {
	first topology.NodeID
	sets  int
	of    [][]flowEntry // by switch; nil until needed
}

// flowsPerHost is for how many flows of a host its edge switch has room: the 64 K of
// CONGA §3.4 are for many more hosts than a simulation has flows.
const flowsPerHost = 64

func newFlowTables(s *shape) flowTables {
	t := flowTables{first: s.edge, sets: 64, of: make([][]flowEntry, s.switches())}
	for t.sets*ways < s.perRack*flowsPerHost {
		t.sets *= 2
	}
	return t
}

// get returns the entry of a flow at a switch, made anew if known is false: then
// whose port it has means nothing.
func (t *flowTables) get(sw topology.NodeID, hash uint64) (e *flowEntry, known bool) {
	entries := t.of[sw-t.first]
	if entries == nil {
		entries = make([]flowEntry, t.sets*ways)
		for i := range entries {
			entries[i].used = -1
		}
		t.of[sw-t.first] = entries
	}
	i := int(mix(hash, uint64(sw))%uint64(t.sets)) * ways
	set := entries[i : i+ways]
	idlest := 0
	for i := range set {
		switch {
		case set[i].hash == hash && set[i].used >= 0:
			return &set[i], true
		case set[i].used < set[idlest].used:
			idlest = i
		}
	}
	set[idlest] = flowEntry{hash: hash, port: -1}
	return &set[idlest], false
}
