package encap

import "encoding/binary"

const (
	datagramHeaders = 20 + 8
	offDatagramSum  = 26 // the UDP checksum
)

// datagram is what all packets of one of weft's own kinds have in common. Each is
// one UDP datagram in IPv4 without options, of the same length.
type datagram struct {
	length int // in bytes, headers included; a multiple of 4
	port   uint16
	magic  uint32 // the payload's first word
	tos    byte   // as sent; receivers take any
}

// is reports whether a packet claims to be of this kind: no fragment, with its
// length, ports and magic. Other packets fail the first comparisons.
func (d *datagram) is(packet []byte) bool {
	return len(packet) >= d.length &&
		packet[9] == protoUDP && packet[0] == 0x45 &&
		binary.BigEndian.Uint32(packet[20:]) == d.ports() &&
		binary.BigEndian.Uint16(packet[2:]) == uint16(d.length) &&
		binary.BigEndian.Uint16(packet[6:])&fragmentMask == 0 &&
		binary.BigEndian.Uint32(packet[datagramHeaders:]) == d.magic
}

// ports is the first word of the UDP header.
func (d *datagram) ports() uint32 { return uint32(d.port)<<16 | uint32(d.port) }

// check looks at the checksums and the UDP length of a packet that is of this kind.
func (d *datagram) check(packet []byte) error {
	// A UDP checksum of 0 means that there is none (RFC 768); these have one.
	if !valid(packet[:20]) || binary.BigEndian.Uint16(packet[offDatagramSum:]) == 0 || fold(d.sum(packet)) != 0xffff {
		return ErrChecksum
	}
	if int(binary.BigEndian.Uint16(packet[24:])) != d.length-20 {
		return ErrTruncated
	}
	return nil
}

// finish writes magic and headers of a packet that has its payload behind the
// magic and is 0 elsewhere.
func (d *datagram) finish(b []byte, from, to [4]byte) {
	b[0] = 0x45
	b[1] = d.tos
	binary.BigEndian.PutUint16(b[2:], uint16(d.length))
	binary.BigEndian.PutUint16(b[6:], flagDF)
	b[8] = ttl
	b[9] = protoUDP
	copy(b[12:], from[:])
	copy(b[16:], to[:])
	binary.BigEndian.PutUint16(b[10:], ^fold(sum(b[:20])))

	binary.BigEndian.PutUint32(b[20:], d.ports())
	binary.BigEndian.PutUint16(b[24:], uint16(d.length-20))
	binary.BigEndian.PutUint32(b[datagramHeaders:], d.magic)
	binary.BigEndian.PutUint16(b[offDatagramSum:], unzero(^fold(d.sum(b))))
}

// sum adds up what the UDP checksum covers, that field included: pseudo header
// (RFC 768), UDP header and payload.
func (d *datagram) sum(b []byte) uint64 {
	s := uint64(protoUDP) + uint64(d.length-20)
	for i := 12; i < d.length; i += 4 { // from the addresses on
		s += uint64(binary.BigEndian.Uint32(b[i:]))
	}
	return s
}

// unzero is a UDP checksum as it is sent: 0 stands for "none" (RFC 768).
func unzero(checksum uint16) uint16 {
	if checksum == 0 {
		return 0xffff
	}
	return checksum
}
