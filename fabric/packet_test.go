package fabric

import (
	"encoding/binary"
	"net/netip"
)

// ipv4 is a header for tests; its checksum and lengths are made by bytes.
type ipv4 struct {
	tos      byte
	id       uint16
	frag     uint16
	ttl      byte
	protocol byte
	src, dst netip.Addr
	options  []byte
}

func (h ipv4) bytes(payload []byte) []byte {
	n := 20 + len(h.options)
	b := make([]byte, n, n+len(payload))
	b[0] = byte(0x40 | n/4)
	b[1] = h.tos
	binary.BigEndian.PutUint16(b[2:], uint16(n+len(payload)))
	binary.BigEndian.PutUint16(b[4:], h.id)
	binary.BigEndian.PutUint16(b[6:], h.frag)
	b[8], b[9] = h.ttl, h.protocol
	copy(b[12:], h.src.AsSlice())
	copy(b[16:], h.dst.AsSlice())
	copy(b[20:], h.options)
	binary.BigEndian.PutUint16(b[10:], ^onesSum(b))
	return append(b, payload...)
}

// onesSum is 0xffff over a header with a right checksum.
func onesSum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}
