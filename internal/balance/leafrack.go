package balance

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"weft/conga"
)

// MaxLeafPaths is how many paths to a rack a leaf switch knows at most.
const MaxLeafPaths = 1024

// LeafUplinks is of how many uplinks a leaf switch estimates the load. Others are taken
// together with the first ones, as their paths have the same tags.
const LeafUplinks = conga.Tags

// LeafPath is a live path from a leaf switch to a rack.
type LeafPath struct {
	Number int        // in the topology.PathSet
	Uplink int        // the switch's, by which it begins
	Bounce netip.Addr // the bouncing switch's address, IPv4
}

// LeafRack is the live paths to a rack. It is struct rack of fabric/bpf/leaf.c.
type LeafRack struct {
	N      uint32                 // live paths
	Number uint32                 // of the rack
	Start  [conga.Tags + 1]uint32 // where in Order the paths of a tag begin
	_      uint32
	Bounce [MaxLeafPaths][4]byte // by path; zero: it is not live
	Order  [MaxLeafPaths]uint16  // live paths by tag, ascending
	Tag    [MaxLeafPaths]uint8   // by path
	Uplink [conga.Tags]uint8     // by tag: the switch's uplink modulo LeafUplinks, by which its paths begin
}

// NewLeafRack returns the rack of a number, to which there are count paths, with those that
// live, if any.
func NewLeafRack(number uint32, count int, live []LeafPath) (*LeafRack, error) {
	if count > MaxLeafPaths {
		return nil, fmt.Errorf("%d paths to rack %d: a leaf switch chooses among at most %d", count, number, MaxLeafPaths)
	}
	r := &LeafRack{Number: number, N: uint32(len(live))}
	for _, p := range live {
		if !p.Bounce.Is4() {
			return nil, fmt.Errorf("path %d to rack %d: %v is no IPv4 address", p.Number, number, p.Bounce)
		}
		tag := conga.Tag(p.Number, count, p.Uplink)
		r.Bounce[p.Number], r.Tag[p.Number] = p.Bounce.As4(), tag
		r.Uplink[tag] = uint8(p.Uplink % LeafUplinks) // conga.Tag gives no two of these one tag
		for t := int(tag) + 1; t <= conga.Tags; t++ {
			r.Start[t]++
		}
	}
	byTag := slices.SortedFunc(slices.Values(live), func(a, b LeafPath) int {
		return cmp.Or(int(r.Tag[a.Number])-int(r.Tag[b.Number]), a.Number-b.Number)
	})
	for i, p := range byTag {
		r.Order[i] = uint16(p.Number)
	}
	return r, nil
}

// Live reports whether a path is in use.
func (r *LeafRack) Live(path uint32) bool {
	return path < MaxLeafPaths && r.Bounce[path] != [4]byte{}
}
