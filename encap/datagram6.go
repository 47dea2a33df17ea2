package encap

import "encoding/binary"

const (
	datagramHeaders6 = ip6Overhead + 8
	offDatagramSum6  = ip6Overhead + 6 // the UDP checksum
)

// is6 is is for IPv6 without extension headers, thus no fragment. It takes any class and
// flow label.
func (d *datagram) is6(packet []byte) bool {
	return len(packet) >= d.length &&
		packet[6] == protoUDP && packet[0]>>4 == 6 &&
		binary.BigEndian.Uint32(packet[ip6Overhead:]) == d.ports() &&
		d.fits(ip6Overhead+int(binary.BigEndian.Uint16(packet[4:])), len(packet)) &&
		binary.BigEndian.Uint32(packet[datagramHeaders6:]) == d.magic
}

// check6 is check for IPv6, where a checksum of 0 is an error (RFC 8200 §8.1).
func (d *datagram) check6(packet []byte) error {
	if binary.BigEndian.Uint16(packet[offDatagramSum6:]) == 0 || fold(d.sum6(packet)) != 0xffff {
		return ErrChecksum
	}
	if int(binary.BigEndian.Uint16(packet[ip6Overhead+4:])) != len(packet)-ip6Overhead {
		return ErrTruncated
	}
	return nil
}

// finish6 is finish for IPv6.
func (d *datagram) finish6(b []byte, from, to [16]byte) {
	length := uint16(len(b) - ip6Overhead)
	b[0], b[1] = 0x60|d.tos>>4, d.tos<<4
	binary.BigEndian.PutUint16(b[4:], length)
	b[6], b[7] = protoUDP, hopLimit
	copy(b[8:], from[:])
	copy(b[24:], to[:])

	binary.BigEndian.PutUint32(b[ip6Overhead:], d.ports())
	binary.BigEndian.PutUint16(b[ip6Overhead+4:], length)
	binary.BigEndian.PutUint32(b[datagramHeaders6:], d.magic)
	binary.BigEndian.PutUint16(b[offDatagramSum6:], unzero(^fold(d.sum6(b))))
}

// sum6 is sum for IPv6. The datagram is short enough for the pseudo header of RFC 8200 §8.1
// to add up to the same as that of RFC 768.
func (d *datagram) sum6(b []byte) uint64 { return sumUDP(b[8:], len(b)-ip6Overhead) }
