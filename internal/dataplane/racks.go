package dataplane

import (
	"encoding/binary"
	"net/netip"
	"time"

	"weft/encap"
	"weft/internal/paths"
	"weft/topology"
)

// rack is what all pairs with hosts of one rack share, whichever links are up.
type rack struct {
	id   topology.NodeID // of its edge switch
	tail sids            // by SRv6: of the destination what all paths have in common
	// heads is the rest of the destinations of all paths, one after the other. Racks
	// with the same heads share their groups.
	heads string

	tags uint16 // a bit for each that a path to it may have (conga.Tag)

	plain bool // the carrier is not used
	mtu   int  // the longest inner packet in bytes; 0: any

	// What a PathDevice was told last.
	prefix netip.Prefix
	told   struct {
		path  int
		until time.Duration
	}
}

// sids is an IPv6 destination made of labels, or a part of one, with zeros in place
// of the rest.
type sids struct{ high, low uint64 }

func sidsFrom(a [16]byte) sids {
	return sids{binary.BigEndian.Uint64(a[:]), binary.BigEndian.Uint64(a[8:])}
}

// ipv6Destination is where the destination begins in an IPv6 header.
const ipv6Destination = 24

// put writes the destination of a path to a rack into an IPv6 header.
func (s sids) put(header []byte, tail sids) {
	binary.BigEndian.PutUint64(header[ipv6Destination:], s.high|tail.high)
	binary.BigEndian.PutUint64(header[ipv6Destination+8:], s.low|tail.low)
}

// rackTable has the racks of all pairs, at most as many as the topology has.
type rackTable struct {
	carrier encap.Carrier
	racks   map[topology.NodeID]*rack
	heads   map[string]string // each once
}

func newRackTable(c encap.Carrier) rackTable {
	return rackTable{carrier: c, racks: make(map[topology.NodeID]*rack), heads: make(map[string]string)}
}

// of finds or makes a rack. set is the paths to it.
func (t *rackTable) of(topo *topology.Topology, id topology.NodeID, set topology.PathSet) *rack {
	r := t.racks[id]
	if r == nil {
		r = &rack{id: id, prefix: topo.RackOf(id), tags: tagsOf(set)}
		if t.carrier == encap.CarrierSRv6 {
			t.label(r, set)
		}
		t.racks[id] = r
	}
	return r
}

// label finds the labels of all paths to a rack, live or not. Config.Validate has
// checked that all paths have labels.
func (t *rackTable) label(r *rack, set topology.PathSet) {
	l, _ := paths.Split(set)
	r.tail = sidsFrom(l.Tail)
	size := paths.Block + l.Size
	heads := make([]byte, 0, len(l.Heads)*size)
	for _, h := range l.Heads {
		heads = append(heads, h[:size]...)
	}
	if known, ok := t.heads[string(heads)]; ok {
		r.heads = known
	} else {
		r.heads = string(heads)
		t.heads[r.heads] = r.heads
	}
}

// head returns the head of path n, of so many paths.
func (r *rack) head(n, count int) (a [16]byte) {
	size := len(r.heads) / count
	copy(a[:], r.heads[n*size:(n+1)*size])
	return a
}

// tagsOf returns a bit for the tag of each path of a set, live or not.
func tagsOf(set topology.PathSet) (tags uint16) {
	for n := range set.Count() {
		tags |= 1 << paths.Tag(set, n)
	}
	return tags
}
