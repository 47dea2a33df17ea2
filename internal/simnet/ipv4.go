package simnet

import "encoding/binary"

// checkHeader does the checks of RFC 1812 §5.2.2 and returns the packet's
// length, which may be less than len(b).
func checkHeader(b []byte) (length int, ok bool) {
	if len(b) < 20 || b[0]>>4 != 4 {
		return 0, false
	}
	ihl := int(b[0]&0xf) * 4
	length = int(binary.BigEndian.Uint16(b[2:]))
	if ihl < 20 || length < ihl || length > len(b) {
		return 0, false
	}
	return length, checksum(b[:ihl]) == 0
}

// checksum is that of RFC 1071; over a header that holds its own it is 0.
func checksum(b []byte) uint16 {
	var s uint32
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
	}
	s = s>>16 + s&0xffff
	return ^uint16(s>>16 + s)
}

// decrementTTL takes a hop off a sound header and mends IPv4's checksum (RFC 1624
// §3); it returns false, and changes nothing, if there is none left.
func decrementTTL(b []byte) bool {
	if isIPv6(b) {
		if b[7] <= 1 {
			return false
		}
		b[7]--
		return true
	}
	if b[8] <= 1 {
		return false
	}
	b[8]--
	s := uint32(binary.BigEndian.Uint16(b[10:])) + 0x0100
	binary.BigEndian.PutUint16(b[10:], uint16(s+(s+1)>>16))
	return true
}

// source returns the source of a packet with a whole header: of IPv4 the address, of IPv6 the
// IPv4 address that it belongs to (topology.Addr6), 0 if there is none.
func source(b []byte) uint32 {
	if isIPv6(b) {
		return within(b[8:])
	}
	return binary.BigEndian.Uint32(b[12:])
}

// destination is source for the destination.
func destination(b []byte) uint32 {
	if isIPv6(b) {
		return within(b[24:])
	}
	return binary.BigEndian.Uint32(b[16:])
}
