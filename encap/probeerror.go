package encap

import "encoding/binary"

// ProbeTooBig reads an ICMP "fragmentation needed" (RFC 1191), or an ICMPv6 "packet too big"
// (RFC 8201), about a probe of its family that this host has sent. The error quotes the probe
// in IP-in-IP of that family, or as the bouncing switch has sent it on. ProbeTooBig returns the probe's token, which nobody off the path knows, and
// the longest packet that fits, in bytes, without an outer header. The caller must
// believe it only if it sent the token.
//
// Errors: ErrNotProbe if b is another packet, or quotes too little to hold the token (RFC
// 792 asks for 8 bytes behind the header; Linux quotes all); ErrTruncated, ErrChecksum. b
// is not changed.
func ProbeTooBig(b []byte) (token uint64, mtu int, err error) {
	if len(b) > 0 && b[0]>>4 == 6 {
		return probeTooBig6(b)
	}
	if len(b) < 20+icmpHeader || b[0]>>4 != 4 || b[9] != protoICMP || binary.BigEndian.Uint16(b[6:])&fragmentMask != 0 {
		return 0, 0, ErrNotProbe
	}
	_, icmp, err := split(b)
	if err != nil {
		return 0, 0, err
	}
	if len(icmp) < icmpHeader {
		return 0, 0, ErrTruncated
	}
	if icmp[0] != icmpUnreachable || icmp[1] != icmpTooBig {
		return 0, 0, ErrNotProbe
	}
	mtu = int(binary.BigEndian.Uint16(icmp[6:]))
	quote := icmp[icmpHeader:]
	if len(quote) >= Overhead+20 && quote[0] == 0x45 && quote[9] == protoIPIP {
		quote, mtu = quote[Overhead:], mtu-Overhead
	}
	const offToken = datagramHeaders + 8
	if len(quote) < offToken+8 || quote[0] != 0x45 || quote[9] != protoUDP ||
		binary.BigEndian.Uint32(quote[20:]) != probeDatagram.ports() ||
		binary.BigEndian.Uint32(quote[datagramHeaders:]) != probeDatagram.magic {
		return 0, 0, ErrNotProbe
	}
	if ^fold(sumBytes(icmp)) != 0 {
		return 0, 0, ErrChecksum
	}
	return binary.BigEndian.Uint64(quote[offToken:]), max(mtu, 0), nil
}
