package gro

import (
	"encoding/binary"

	"weft/flowcell"
)

// Finish turns the headers of the first packet into those of the train, in place. b
// begins with that packet's headers, as Start has seen them. Finish returns false for a
// train of one packet: pass that packet on as it came, with its device's metadata; b is
// unchanged.
//
// It sets the IP length, the last packet's PSH and FIN, and the IPv4 header checksum. The
// checksum is updated, not computed (RFC 1624), so that a wrong one stays wrong.
//
// The TCP checksum becomes the sum of the pseudo-header alone, as in Linux after GRO
// (CHECKSUM_PARTIAL). In virtio_net_hdr this is NEEDS_CSUM, with csum_start at the TCP
// header and csum_offset 16. Netstack ignores it with RXChecksumValidated. It must not be
// sent on a wire.
func (t *Train) Finish(b []byte) bool {
	if t.packets < 2 {
		return false
	}
	b = b[:t.size]
	var addresses []byte
	ip := t.ipSize
	if ip == ipv4Header {
		was, is := binary.BigEndian.Uint16(b[2:]), uint16(t.length)
		binary.BigEndian.PutUint16(b[2:], is)
		sum := uint32(^binary.BigEndian.Uint16(b[10:])) + uint32(^was) + uint32(is)
		binary.BigEndian.PutUint16(b[10:], ^fold(sum))
		addresses = b[12:20]
	} else {
		binary.BigEndian.PutUint16(b[4:], uint16(t.length-ip))
		addresses = b[8:40]
	}
	sum := uint32(flowcell.ProtoTCP) + uint32(t.length-ip)
	for ; len(addresses) > 0; addresses = addresses[2:] {
		sum += uint32(binary.BigEndian.Uint16(addresses))
	}
	b[ip+13] |= t.flags // which differ in PSH and FIN only
	binary.BigEndian.PutUint16(b[ip+16:], fold(sum))
	return true
}

// fold adds the carries of a one's complement sum of a few 16-bit words.
func fold(sum uint32) uint16 {
	sum = sum>>16 + sum&0xffff
	return uint16(sum>>16 + sum)
}
