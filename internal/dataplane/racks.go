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
	host topology.NodeID // one of its hosts
	tail sids            // by SRv6: of the destination what all paths have in common
	// heads is the rest of all paths' destinations, one after the other. Racks with
	// the same heads share their groups.
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

// sids is an IPv6 destination made of labels, or a part of one with zeros in place
// of the rest.
type sids struct{ high, low uint64 }

func sidsFrom(a [16]byte) sids {
	return sids{binary.BigEndian.Uint64(a[:]), binary.BigEndian.Uint64(a[8:])}
}

// ipv6Destination is where an IPv6 header has it.
const ipv6Destination = 24

// put writes the destination of a path to a rack into an IPv6 header.
func (s sids) put(header []byte, tail sids) {
	binary.BigEndian.PutUint64(header[ipv6Destination:], s.high|tail.high)
	binary.BigEndian.PutUint64(header[ipv6Destination+8:], s.low|tail.low)
}

// rackTable has the racks that there are pairs with: no more than the topology has.
type rackTable struct {
	carrier encap.Carrier
	racks   map[topology.NodeID]*rack
	heads   map[string]string // each once
}

func newRackTable(c encap.Carrier) rackTable {
	return rackTable{carrier: c, racks: make(map[topology.NodeID]*rack), heads: make(map[string]string)}
}

// of finds or makes the rack of a host, to which the Host has these paths.
func (t *rackTable) of(topo *topology.Topology, host topology.NodeID, set topology.PathSet) *rack {
	id := paths.EdgeOf(topo, host)
	r := t.racks[id]
	if r == nil {
		r = &rack{id: id, host: host, prefix: paths.PrefixOf(topo.Node(id).Addr), tags: tagsOf(set)}
		if t.carrier == encap.CarrierSRv6 {
			t.label(r, set)
		}
		t.racks[id] = r
	}
	return r
}

// label finds the labels of all paths to a rack, those in no use, too.
func (t *rackTable) label(r *rack, set topology.PathSet) {
	all := make([][16]byte, set.Count())
	for n := range all {
		all[n] = paths.SIDs(set.Choices(n))
	}
	from := differ(all)
	tail := all[0]
	clear(tail[:from])
	r.tail = sidsFrom(tail)
	heads := make([]byte, 0, len(all)*from)
	for _, a := range all {
		heads = append(heads, a[:from]...)
	}
	if known, ok := t.heads[string(heads)]; ok {
		r.heads = known
	} else {
		r.heads = string(heads)
		t.heads[r.heads] = r.heads
	}
}

// differ is how many of the first bytes of all addresses hold what differs.
func differ(all [][16]byte) int {
	n := 2 // the block is everybody's first
	for _, a := range all {
		for i := 15; i >= n; i-- {
			if a[i] != all[0][i] {
				n = i + 1
			}
		}
	}
	return n
}

// head is the head of path number n.
func (r *rack) head(n, paths int) (a [16]byte) {
	size := len(r.heads) / paths
	copy(a[:], r.heads[n*size:(n+1)*size])
	return a
}
