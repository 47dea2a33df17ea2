package gro

import (
	"encoding/binary"

	"weft/flowcell"
)

// Header lengths, in bytes.
const (
	ipv4Header = 20
	ipv6Header = 40
	tcpHeader  = 20
	maxOptions = 40
)

const (
	// alone are the flags of a packet that is never merged.
	alone = flowcell.FlagSYN | flowcell.FlagRST | flowcell.FlagURG | flowcell.FlagCWR
	// last are the flags of a packet that ends its train.
	last = flowcell.FlagPSH | flowcell.FlagFIN
)

// header is what the packets of a train have in common: header fields as they
// are on the wire, zero where packets may differ.
type header struct {
	ip      [5]uint64 // of IPv4 two words and a half
	ports   uint32
	ack     uint32
	rest    uint64           // data offset, flags, window, urgent pointer
	options [maxOptions]byte // as many as size says
	ipSize  int              // bytes of IP header
	size    int              // bytes of IP and TCP header
}

// words4 reads an IPv4 header of 20 bytes, without total length, ID and
// checksum.
func words4(b []byte) (first, second, dst uint64) {
	_ = b[ipv4Header-1]
	return binary.BigEndian.Uint64(b) & 0xffff_0000_0000_ffff,
		binary.BigEndian.Uint64(b[8:]) & 0xffff_0000_ffff_ffff,
		uint64(binary.BigEndian.Uint32(b[16:]))
}

// words6 reads an IPv6 header, without payload length and the lower 16 bits of
// the flow label.
func words6(b []byte) (first, src1, src2, dst1, dst2 uint64) {
	_ = b[ipv6Header-1]
	return binary.BigEndian.Uint64(b) & 0xffff_0000_0000_ffff,
		binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:]),
		binary.BigEndian.Uint64(b[24:]), binary.BigEndian.Uint64(b[32:])
}

// wordsTCP reads a TCP header, without PSH, FIN and checksum.
func wordsTCP(b []byte) (ports, seq, ack uint32, rest uint64) {
	_ = b[tcpHeader-1]
	const mask = 0xff<<56 | (0xff&^last)<<48 | 0xffff<<32 | 0xffff
	return binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:]),
		binary.BigEndian.Uint64(b[12:]) & mask
}

// read makes h the header of b, and returns the sequence number and the bytes of
// payload. If b cannot be merged with anything, both are 0, and h has no size.
func (h *header) read(b []byte) (seq uint32, payload int) {
	*h = header{}
	var total int
	switch {
	case len(b) >= ipv4Header+tcpHeader && b[0] == 0x45:
		const moreOrOffsetOrReserved = 0xbfff
		if b[9] != flowcell.ProtoTCP || binary.BigEndian.Uint16(b[6:])&moreOrOffsetOrReserved != 0 {
			return 0, 0
		}
		total = int(binary.BigEndian.Uint16(b[2:]))
		h.ipSize = ipv4Header
		h.ip[0], h.ip[1], h.ip[2] = words4(b)
	case len(b) >= ipv6Header+tcpHeader && b[0]>>4 == 6:
		if b[6] != flowcell.ProtoTCP {
			return 0, 0
		}
		total = ipv6Header + int(binary.BigEndian.Uint16(b[4:]))
		h.ipSize = ipv6Header
		h.ip[0], h.ip[1], h.ip[2], h.ip[3], h.ip[4] = words6(b)
	default:
		return 0, 0
	}
	tcp := b[h.ipSize:]
	offset := int(tcp[12]>>4) * 4
	payload = total - h.ipSize - offset
	if offset < tcpHeader || offset > len(tcp) || payload <= 0 || tcp[13]&alone != 0 {
		return 0, 0
	}
	h.ports, seq, h.ack, h.rest = wordsTCP(tcp)
	h.size = h.ipSize + offset
	copy(h.options[:], tcp[tcpHeader:offset])
	return seq, payload
}
