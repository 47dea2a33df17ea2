package encap

import "encoding/binary"

// UDPTOS returns the TOS byte, DSCP and ECN, for the outer header of an inner IPv4 or
// IPv6 packet: the inner packet's own (RFC 6040 §4.1, RFC 2983 §4.1). inner must not be
// empty and must be well-formed, as from ParseUDP.
func UDPTOS(inner []byte) byte {
	if inner[0]>>4 == 4 {
		return inner[1]
	}
	return class6(inner)
}

// UDPDecapsulateTOS writes the ECN field that results from the outer TOS byte (RFC 6040
// §4.2) into an inner packet from ParseUDP. The DSCP stays. It updates the IPv4 header's
// checksum without checking it.
//
// Error: ErrECN; the packet must be dropped, and is unchanged.
func UDPDecapsulateTOS(inner []byte, tos byte) error {
	was := ECN(UDPTOS(inner) & ecnMask)
	ecn, ok := decapsulateECN(was, ECN(tos&ecnMask))
	switch {
	case !ok:
		return ErrECN
	case ecn == was:
	case inner[0]>>4 == 4:
		from := binary.BigEndian.Uint16(inner)
		to := from&^ecnMask | uint16(ecn)
		binary.BigEndian.PutUint16(inner, to)
		checksum := binary.BigEndian.Uint16(inner[10:])
		binary.BigEndian.PutUint16(inner[10:], update(checksum, from, to))
	default:
		putECN6(inner, ecn)
	}
	return nil
}
