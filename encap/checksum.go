package encap

import "encoding/binary"

// sum adds up the 32-bit words of an IPv4 header, 20 bytes and options of a
// multiple of 4. Folded, it is the sum of the 16-bit words (RFC 1071 §2).
func sum(header []byte) uint64 {
	h := (*[20]byte)(header)
	s := uint64(binary.BigEndian.Uint32(h[0:])) + uint64(binary.BigEndian.Uint32(h[4:])) +
		uint64(binary.BigEndian.Uint32(h[8:])) + uint64(binary.BigEndian.Uint32(h[12:])) +
		uint64(binary.BigEndian.Uint32(h[16:]))
	for options := header[20:]; len(options) >= 4; options = options[4:] {
		s += uint64(binary.BigEndian.Uint32(options))
	}
	return s
}

// fold adds the carries back in, as one's complement arithmetic wants.
func fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s)
}

// valid reports whether a header agrees with its checksum.
func valid(header []byte) bool { return fold(sum(header)) == 0xffff }

// update returns the checksum after one 16-bit word has changed (RFC 1624 §3,
// equation 3; RFC 1141's shorter one gets a zero wrong).
func update(checksum, from, to uint16) uint16 {
	return ^fold(uint64(^checksum) + uint64(^from) + uint64(to))
}
