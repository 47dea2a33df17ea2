package dataplane

import (
	"encoding/binary"
	"net/netip"
	"time"

	"weft/encap"
	"weft/internal/paths"
	"weft/topology"
)

// rack is what all pairs with hosts of one rack share, whichever links are up. The families
// have racks of their own: a carrier may be good for one of them only.
type rack struct {
	id   topology.NodeID // of its edge switch
	six  bool            // of pairs with IPv6 addresses
	tail sids            // by labels: of the destination what all paths have in common
	// heads is the rest of the destinations of all paths, one after the other. Racks
	// with the same heads share their groups. It is empty without labels.
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

// at returns the rack of an edge switch, of either family; nil if no pair has one.
func (t *rackTable) at(edge topology.NodeID) *rack {
	if r := t.racks[rackKey{edge, false}]; r != nil {
		return r
	}
	return t.racks[rackKey{edge, true}]
}

// rackTable has the racks of all pairs, at most twice as many as the topology has.
type rackTable struct {
	carrier encap.Carrier
	racks   map[rackKey]*rack
	heads   map[string]string // each once
}

// rackKey tells racks apart.
type rackKey struct {
	edge topology.NodeID
	six  bool
}

func newRackTable(c encap.Carrier) rackTable {
	return rackTable{carrier: c, racks: make(map[rackKey]*rack), heads: make(map[string]string)}
}

// of finds or makes a rack of a family. set is the paths to it.
func (t *rackTable) of(topo *topology.Topology, id topology.NodeID, six bool, set topology.PathSet) *rack {
	key := rackKey{id, six}
	r := t.racks[key]
	if r == nil {
		r = &rack{id: id, six: six, prefix: topo.RackOf(id), tags: tagsOf(set)}
		if t.carrier == encap.CarrierSRv6 && topo.Computed() {
			t.label(r, set)
		}
		t.racks[key] = r
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
