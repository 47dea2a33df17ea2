package hostprog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"weft/internal/kernel/kerneltest"
)

// packets are of all the kinds that the program tells apart.
func (s *sprayed) packets() []namedPacket {
	top := s.lab.Config.Topology
	tcp := kerneltest.IPv4{TOS: 0x2a, ID: 0x1234, Frag: 0x4000, TTL: 33, Protocol: 6, Src: s.src.Addr, Dst: s.dst.Addr}
	segment := append([]byte{0x12, 0x34, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x10, 1, 0, 0xab, 0xcd, 0, 0}, "payload"...)
	var all []namedPacket
	add := func(name string, h kerneltest.IPv4, payload []byte, edit ...func(b []byte)) {
		b := h.Bytes(payload)
		for _, e := range edit {
			e(b)
		}
		all = append(all, namedPacket{name, b})
	}
	change := func(name string, edit func(*kerneltest.IPv4), payload []byte, bytes ...func(b []byte)) {
		h := tcp
		edit(&h)
		add(name, h, payload, bytes...)
	}
	for _, id := range []uint16{0, 1, 2, 3, 62, 63, 64, 65, 128, 0xffc0, 0xffff} {
		change("TCP by ID", func(h *kerneltest.IPv4) { h.ID = id }, segment)
	}
	for port := range byte(8) {
		p := bytes.Clone(segment)
		p[1] = port
		add("TCP by port", tcp, p)
	}
	for tos := range byte(4) {
		change("ECN", func(h *kerneltest.IPv4) { h.TOS = 0x48 | tos }, segment)
	}
	change("reserved flag", func(h *kerneltest.IPv4) { h.Frag = 0xc000 }, segment)
	change("first fragment", func(h *kerneltest.IPv4) { h.Frag = 0x2000 }, segment)
	change("first fragment with DF", func(h *kerneltest.IPv4) { h.Frag = 0x6000 }, segment)
	change("last fragment", func(h *kerneltest.IPv4) { h.Frag = 100 }, segment)
	change("options", func(h *kerneltest.IPv4) { h.Options = []byte{1, 1, 1, 0} }, segment)
	change("most options", func(h *kerneltest.IPv4) { h.Options = make([]byte, 40) }, segment)
	change("TCP cut short", func(*kerneltest.IPv4) {}, segment[:19])
	change("nothing inside", func(*kerneltest.IPv4) {}, nil)
	for _, id := range []uint16{0, 1, 2, 3, 64, 128, 192} {
		change("TCP without DF", func(h *kerneltest.IPv4) { h.ID, h.Frag = id, 0 }, segment)
		change("options, by ID", func(h *kerneltest.IPv4) { h.ID, h.Options = id, []byte{1, 1, 1, 0} }, segment)
		change("UDP", func(h *kerneltest.IPv4) { h.Protocol, h.ID, h.Frag = 17, id, 0 }, segment)
		change("UDP with DF", func(h *kerneltest.IPv4) { h.Protocol, h.ID = 17, id }, segment)
		change("ICMP", func(h *kerneltest.IPv4) { h.Protocol, h.ID = 1, id }, []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0})
	}
	change("embedded address", func(h *kerneltest.IPv4) { h.Src = top.EmbeddedAddr(s.src.ID) }, segment)
	change("to an embedded address", func(h *kerneltest.IPv4) { h.Dst = top.EmbeddedAddr(s.dst.ID) }, segment)
	change("foreign source", func(h *kerneltest.IPv4) { h.Src = netip.MustParseAddr("10.0.0.77") }, segment)
	change("own rack", func(h *kerneltest.IPv4) { h.Dst = kerneltest.Hosts(top)[1].Addr }, segment)
	change("not of the fabric", func(h *kerneltest.IPv4) { h.Dst = netip.MustParseAddr("192.0.2.1") }, segment)
	change("nested", func(h *kerneltest.IPv4) { h.Protocol = 4 }, tcp.Bytes(segment))
	for _, n := range []int{1440, 1441, 1460, 1461, 1480} {
		change(fmt.Sprintf("%d bytes", 20+n), func(*kerneltest.IPv4) {}, make([]byte, n))
	}
	change("IHL 4", func(*kerneltest.IPv4) {}, segment, func(b []byte) { b[0] = 0x44 })
	change("length below header", func(*kerneltest.IPv4) {}, segment, func(b []byte) { b[3] = 19 })
	change("length above packet", func(*kerneltest.IPv4) {}, segment, func(b []byte) { b[3]++ })
	change("padding", func(*kerneltest.IPv4) {}, append(segment, 0), func(b []byte) { b[3]-- })
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
