package kerneltest

import (
	"encoding/binary"
	"net/netip"
)

// IPv4 is a header for tests; its checksum and lengths are made by Bytes.
type IPv4 struct {
	TOS      byte
	ID       uint16
	Frag     uint16
	TTL      byte
	Protocol byte
	Src, Dst netip.Addr
	Options  []byte
}

// Bytes returns a packet with this header.
func (h IPv4) Bytes(payload []byte) []byte {
	n := 20 + len(h.Options)
	b := make([]byte, n, n+len(payload))
	b[0] = byte(0x40 | n/4)
	b[1] = h.TOS
	binary.BigEndian.PutUint16(b[2:], uint16(n+len(payload)))
	binary.BigEndian.PutUint16(b[4:], h.ID)
	binary.BigEndian.PutUint16(b[6:], h.Frag)
	b[8], b[9] = h.TTL, h.Protocol
	copy(b[12:], h.Src.AsSlice())
	copy(b[16:], h.Dst.AsSlice())
	copy(b[20:], h.Options)
	binary.BigEndian.PutUint16(b[10:], ^OnesSum(b))
	return append(b, payload...)
}

// IPv6 is a header for tests without extension headers; its length is made by Bytes.
type IPv6 struct {
	Class    byte
	Label    uint32
	Next     byte
	Hops     byte
	Src, Dst netip.Addr
}

// Bytes returns a packet with this header.
func (h IPv6) Bytes(payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 40+len(payload)), 6<<28|uint32(h.Class)<<20|h.Label)
	b = binary.BigEndian.AppendUint16(b, uint16(len(payload)))
	b = append(b, h.Next, h.Hops)
	b = append(b, h.Src.AsSlice()...)
	b = append(b, h.Dst.AsSlice()...)
	return append(b, payload...)
}

// OnesSum is 0xffff over a header with a right checksum.
func OnesSum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}
