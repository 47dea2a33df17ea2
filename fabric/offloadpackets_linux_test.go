package fabric

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
)

// packets are of all the kinds that the program tells apart.
func (s *sprayed) packets() []namedPacket {
	top := s.lab.Config.Topology
	tcp := ipv4{tos: 0x2a, id: 0x1234, frag: 0x4000, ttl: 33, protocol: 6, src: s.src.Addr, dst: s.dst.Addr}
	segment := append([]byte{0x12, 0x34, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x10, 1, 0, 0xab, 0xcd, 0, 0}, "payload"...)
	var all []namedPacket
	add := func(name string, h ipv4, payload []byte, edit ...func(b []byte)) {
		b := h.bytes(payload)
		for _, e := range edit {
			e(b)
		}
		all = append(all, namedPacket{name, b})
	}
	change := func(name string, edit func(*ipv4), payload []byte, bytes ...func(b []byte)) {
		h := tcp
		edit(&h)
		add(name, h, payload, bytes...)
	}
	for _, id := range []uint16{0, 1, 2, 3, 62, 63, 64, 65, 128, 0xffc0, 0xffff} {
		change("TCP by ID", func(h *ipv4) { h.id = id }, segment)
	}
	for port := range byte(8) {
		p := bytes.Clone(segment)
		p[1] = port
		add("TCP by port", tcp, p)
	}
	for tos := range byte(4) {
		change("ECN", func(h *ipv4) { h.tos = 0x48 | tos }, segment)
	}
	change("reserved flag", func(h *ipv4) { h.frag = 0xc000 }, segment)
	change("first fragment", func(h *ipv4) { h.frag = 0x2000 }, segment)
	change("first fragment with DF", func(h *ipv4) { h.frag = 0x6000 }, segment)
	change("last fragment", func(h *ipv4) { h.frag = 100 }, segment)
	change("options", func(h *ipv4) { h.options = []byte{1, 1, 1, 0} }, segment)
	change("most options", func(h *ipv4) { h.options = make([]byte, 40) }, segment)
	change("TCP cut short", func(*ipv4) {}, segment[:19])
	change("nothing inside", func(*ipv4) {}, nil)
	for _, id := range []uint16{0, 1, 2, 3, 64, 128, 192} {
		change("TCP without DF", func(h *ipv4) { h.id, h.frag = id, 0 }, segment)
		change("options, by ID", func(h *ipv4) { h.id, h.options = id, []byte{1, 1, 1, 0} }, segment)
		change("UDP", func(h *ipv4) { h.protocol, h.id, h.frag = 17, id, 0 }, segment)
		change("UDP with DF", func(h *ipv4) { h.protocol, h.id = 17, id }, segment)
		change("ICMP", func(h *ipv4) { h.protocol, h.id = 1, id }, []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0})
	}
	change("embedded address", func(h *ipv4) { h.src = top.EmbeddedAddr(s.src.ID) }, segment)
	change("to an embedded address", func(h *ipv4) { h.dst = top.EmbeddedAddr(s.dst.ID) }, segment)
	change("foreign source", func(h *ipv4) { h.src = netip.MustParseAddr("10.0.0.77") }, segment)
	change("own rack", func(h *ipv4) { h.dst = hostsOf(top)[1].Addr }, segment)
	change("not of the fabric", func(h *ipv4) { h.dst = netip.MustParseAddr("192.0.2.1") }, segment)
	change("nested", func(h *ipv4) { h.protocol = 4 }, tcp.bytes(segment))
	for _, n := range []int{1440, 1441, 1460, 1461, 1480} {
		change(fmt.Sprintf("%d bytes", 20+n), func(*ipv4) {}, make([]byte, n))
	}
	change("IHL 4", func(*ipv4) {}, segment, func(b []byte) { b[0] = 0x44 })
	change("length below header", func(*ipv4) {}, segment, func(b []byte) { b[3] = 19 })
	change("length above packet", func(*ipv4) {}, segment, func(b []byte) { b[3]++ })
	change("padding", func(*ipv4) {}, append(segment, 0), func(b []byte) { b[3]-- })
	return all
}

// noise is a packet of which every field may be anything.
func (s *sprayed) noise(rng *rand.Rand) []byte {
	b := make([]byte, 20+rng.IntN(200))
	for j := range b {
		b[j] = byte(rng.Uint32())
	}
	b[0] = 0x40 | byte(4+rng.IntN(4))
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)+rng.IntN(3)-1))
	b[9] = []byte{1, 4, 6, 6, 6, 17}[rng.IntN(6)]
	if rng.IntN(2) == 0 {
		b[6], b[7] = 0x40, 0
	}
	copy(b[12:], s.src.Addr.AsSlice())
	copy(b[16:], s.dst.Addr.AsSlice())
	return b
}
