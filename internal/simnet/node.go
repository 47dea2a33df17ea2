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
	seed     uint64 // of its hash, so that the layers do not all choose alike
	table    table
}

func newNode(t *topology.Topology, n topology.Node, seed uint64) node {
	s := node{layer: n.Layer, own: number(n.Addr), seed: seed}
	s.embedded = s.own
	if n.Layer == topology.LayerHost {
		s.embedded = number(t.EmbeddedAddr(n.ID))
	}
	ports := t.Ports(n.ID)
	for _, r := range t.Routes(n.ID) {
		var out []int32
		for _, i := range r.Ports {
			index := 2 * int32(ports[i].Link)
			if !ports[i].Up {
				index++
			}
			out = append(out, index)
		}
		s.table.add(r.Prefix, out)
	}
	return s
}

func (s *node) owns(addr uint32) bool { return addr == s.own || addr == s.embedded }

// bounce turns p into the packet inside, and returns false and the reason if
// the switch must drop it.
func (s *node) bounce(p *packet) (cause Cause, ok bool) {
	if s.layer == topology.LayerEdge {
		return NotForUs, false
	}
	inner, err := encap.Decapsulate(p.data)
	switch {
	case errors.Is(err, encap.ErrNotIPIP):
		return NotForUs, false
	case err != nil:
		return Malformed, false
	case source(inner) != source(p.data):
		// Or a bounce would launder the source address of a forger.
		return Spoofed, false
	case s.owns(destination(inner)):
		return NotForUs, false
	}
	p.data = inner
	return 0, true
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

// lookup returns the ports towards addr; none when it is refused or unknown.
func (t table) lookup(addr uint32) []int32 {
	for i := range t {
		if ports, ok := t[i].next[addr&t[i].mask]; ok {
			return ports
		}
	}
	return nil
}

func number(addr netip.Addr) uint32 {
	a := addr.As4()
	return binary.BigEndian.Uint32(a[:])
}
