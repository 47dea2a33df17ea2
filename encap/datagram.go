package encap

import "encoding/binary"

const (
	datagramHeaders = 20 + 8
	offDatagramSum  = 26 // the UDP checksum
)

// datagram describes one of weft's own kinds of packets. Each is a UDP datagram in IPv4
// without options, or in IPv6 (datagram6.go). All of a kind have the same length, but for
// padding where the kind allows it.
type datagram struct {
	length int // in bytes, headers included; a multiple of 4
	most   int // the same with the most padding; 0: there is none
	port   uint16
	magic  uint32 // the payload's first word
	tos    byte   // as sent; receivers take any
}

// of is the same kind in another class.
func (d datagram) of(tos ECN) datagram {
	d.tos = byte(tos)
	return d
}

// is reports whether a packet claims to be of this kind: no fragment, with its
// length, ports and magic. Other packets fail the first comparisons.
func (d *datagram) is(packet []byte) bool {
	return len(packet) >= d.length &&
		packet[9] == protoUDP && packet[0] == 0x45 &&
		binary.BigEndian.Uint32(packet[20:]) == d.ports() &&
		d.fits(int(binary.BigEndian.Uint16(packet[2:])), len(packet)) &&
		binary.BigEndian.Uint16(packet[6:])&fragmentMask == 0 &&
		binary.BigEndian.Uint32(packet[datagramHeaders:]) == d.magic
}

// fits reports whether a packet of which there are so many bytes may have a length.
func (d *datagram) fits(length, bytes int) bool {
	return length == d.length || d.length < length && length <= min(d.most, bytes)
}

// ports is the first word of the UDP header.
func (d *datagram) ports() uint32 { return uint32(d.port)<<16 | uint32(d.port) }

// check looks at the checksums and the UDP length of a packet that is of this kind,
// without what is behind its end.
func (d *datagram) check(packet []byte) error {
	// A UDP checksum of 0 means that there is none (RFC 768); these have one.
	if !valid(packet[:20]) || binary.BigEndian.Uint16(packet[offDatagramSum:]) == 0 || fold(d.sum(packet)) != 0xffff {
		return ErrChecksum
	}
	if int(binary.BigEndian.Uint16(packet[24:])) != len(packet)-20 {
		return ErrTruncated
	}
	return nil
}

// finish writes magic and headers of a packet that has its payload behind the
// magic and is 0 elsewhere. b ends with the packet.
func (d *datagram) finish(b []byte, from, to [4]byte) {
	b[0] = 0x45
	b[1] = d.tos
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[6:], flagDF)
	b[8] = ttl
	b[9] = protoUDP
	copy(b[12:], from[:])
	copy(b[16:], to[:])
	binary.BigEndian.PutUint16(b[10:], ^fold(sum(b[:20])))

	binary.BigEndian.PutUint32(b[20:], d.ports())
	binary.BigEndian.PutUint16(b[24:], uint16(len(b)-20))
	binary.BigEndian.PutUint32(b[datagramHeaders:], d.magic)
	binary.BigEndian.PutUint16(b[offDatagramSum:], unzero(^fold(d.sum(b))))
}

// sum adds up what the UDP checksum covers, that field included: pseudo header
// (RFC 768), UDP header and payload. b ends with the packet.
func (d *datagram) sum(b []byte) uint64 { return sumUDP(b[12:], len(b)-20) }

// sumUDP is the sum of a datagram of length bytes and its pseudo header. b begins with the
// addresses.
func sumUDP(b []byte, length int) uint64 {
	s := uint64(protoUDP) + uint64(length)
	for ; len(b) >= 4; b = b[4:] {
		s += uint64(binary.BigEndian.Uint32(b))
	}
	return s + sumBytes(b)
}

// unzero is a UDP checksum as it is sent: 0 stands for "none" (RFC 768).
func unzero(checksum uint16) uint16 {
	if checksum == 0 {
		return 0xffff
	}
	return checksum
}
