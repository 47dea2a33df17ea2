package simnet

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"

	"weft/encap"
	"weft/topology"
)

// node is a host or a switch.
type node struct {
	layer topology.Layer
	own   uint32
	// embedded is a host's second address; a switch has none and repeats own.
	embedded uint32
	// virtual are the addresses of a VL2's virtual spines that this spine is.
	virtual []uint32
	seed    uint64 // of its hash, so that the layers do not all choose alike
	down    bool   // it has failed
	deaf    bool   // it takes no outer headers off
	// tables are the main one and, for what was decapsulated at virtual spine v,
	// number v+1, which comes before it.
	tables []table
	// out are the ports of the network by the numbers of the node's own, -1 where
	// the link is dead.
	out []int32
}

func newNode(t *topology.Topology, n topology.Node, seed uint64) node {
	s := node{layer: n.Layer, own: number(n.Addr), seed: seed}
	s.embedded = s.own
	if n.Layer == topology.LayerHost {
		s.embedded = number(t.EmbeddedAddr(n.ID))
	}
	if b := t.BouncingAddrs(n.ID); len(b) > 1 {
		for _, addr := range b {
			s.virtual = append(s.virtual, number(addr))
		}
	}
	s.tables = make([]table, 1+len(s.virtual))
	ports := t.Ports(n.ID)
	for _, p := range ports {
		index := 2 * int32(p.Link)
		switch {
		case !t.Live(p.Link):
			index = -1
		case !p.Up:
			index++
		}
		s.out = append(s.out, index)
	}
	for _, r := range t.Routes(n.ID) {
		var out []int32
		for _, i := range r.Weighted() {
			out = append(out, s.out[i])
		}
		s.tables[r.Virtual].add(r.Prefix, out)
	}
	return s
}

func (s *node) owns(addr uint32) bool {
	return addr == s.own || addr == s.embedded || slices.Contains(s.virtual, addr)
}

// routes returns the ports towards addr, none when it is refused or unknown,
// for what was decapsulated at virtual spine number virtual-1, 0 for the rest.
func (s *node) routes(addr uint32, virtual int) []int32 {
	if virtual > 0 {
		if ports, ok := s.tables[virtual].lookup(addr); ok {
			return ports
		}
	}
	ports, _ := s.tables[0].lookup(addr)
	return ports
}

// bounce turns p into the packet inside, and returns which table comes before
// the main one; or false and the reason if the switch must drop it.
func (s *node) bounce(p *packet) (virtual int, cause Cause, ok bool) {
	if s.layer == topology.LayerEdge || s.deaf {
		return 0, NotForUs, false
	}
	virtual = 1 + slices.Index(s.virtual, destination(p.data))
	inner, err := encap.Decapsulate(p.data)
	switch {
	case errors.Is(err, encap.ErrNotIPIP):
		return 0, NotForUs, false
	case err != nil:
		return 0, Malformed, false
	case source(inner) != source(p.data):
		// Or a bounce would launder the source address of a forger.
		return 0, Spoofed, false
	case s.owns(destination(inner)):
		return 0, NotForUs, false
	}
	p.data = inner
	return virtual, 0, true
}

// table finds the longest matching prefix: a map per prefix length, longest
// first. The tables of a Clos have four lengths.
type table []prefixes

type prefixes struct {
	bits int
	mask uint32
	next map[uint32][]int32 // ports of the network; none: refused
}

func (t *table) add(p netip.Prefix, ports []int32) {
	i, found := slices.BinarySearchFunc(*t, p.Bits(), func(e prefixes, bits int) int { return bits - e.bits })
	if !found {
		mask := ^uint32(0) << (32 - p.Bits())
		*t = slices.Insert(*t, i, prefixes{p.Bits(), mask, map[uint32][]int32{}})
	}
	(*t)[i].next[number(p.Addr())] = ports
}

// lookup returns the ports towards addr, none when it is refused, and false when
// it is unknown.
func (t table) lookup(addr uint32) ([]int32, bool) {
	for i := range t {
		if ports, ok := t[i].next[addr&t[i].mask]; ok {
			return ports, true
		}
	}
	return nil, false
}

func number(addr netip.Addr) uint32 {
	a := addr.As4()
	return binary.BigEndian.Uint32(a[:])
}
