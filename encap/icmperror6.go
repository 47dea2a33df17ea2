package encap

import "encoding/binary"

const (
	protoICMPv6 = 58

	icmp6Unreachable  = 1
	icmp6TooBig       = 2
	icmp6TimeExceeded = 3
	icmp6BadParameter = 4
	icmp6Query        = 128 // types from here on are no errors (RFC 4443 §2.1)
	icmp6Redirect     = 137 // but no error may be about one

	icmpNet        = 0  // code of icmpUnreachable
	icmpProhibited = 13 // RFC 1812 §5.2.7.1

	// leastMTU6 is the least that InnerError reports to a sender of IPv6, in bytes (RFC 8201
	// §4). Every IPv6 link has as much.
	leastMTU6 = 1280
	// mostError6 is the length of the longest ICMPv6 error, in bytes (RFC 4443 §2.4).
	mostError6 = 1280
)

// codes6 are the codes of ICMPv6 for those of ICMP's unreachable (RFC 7915 §4.2); those that
// are not listed are "no route".
var codes6 = [16]byte{icmpHost: 3, 9: 1, 10: 1, icmpProhibited: 1, 15: 1}

// innerError6 is InnerError for ICMPv6.
func innerError6(b []byte) (packet, about []byte, err error) {
	if len(b) >= ip6Overhead && b[6] != protoICMPv6 {
		return nil, nil, ErrNotTunnelError
	}
	n, err := length6(b)
	if err != nil {
		return nil, nil, err
	}
	header, icmp := b[:ip6Overhead], b[ip6Overhead:n]
	if len(icmp) < icmpHeader {
		return nil, nil, ErrTruncated
	}
	inner, err := quoted6(header, icmp)
	if err != nil {
		return nil, nil, err
	}
	if ^fold(sumICMP6(header, icmp)) != 0 {
		return nil, nil, ErrChecksum
	}
	code, ok := innerCode6(icmp[0], icmp[1])
	if !ok || aboutError(inner) {
		return nil, nil, ErrOurOwn
	}
	mtu := int(min(binary.BigEndian.Uint32(icmp[4:]), 0xffff)) - ip6Overhead
	if inner[0]>>4 == 6 {
		from := [16]byte(header[8:24])
		packet, about = putError6(b, &from, inner, code, mtu)
		return packet, about, nil
	}
	h := [Overhead]byte{0: 0x45, 8: ttl, 9: protoICMP}
	copy(h[12:], inner[16:20])
	copy(h[16:], inner[12:16])
	copy(b, h[:]) // inner lies behind it: it begins 88 bytes further on at least
	packet, about = putError4(b, Overhead, inner, code, mtu)
	return packet, about, nil
}

// quoted6 is quoted for ICMPv6.
func quoted6(header, icmp []byte) (inner []byte, err error) {
	quote := icmp[icmpHeader:]
	switch t := icmp[0]; {
	case t < icmp6Unreachable || t > icmp6BadParameter,
		len(quote) < ip6Overhead || quote[0]>>4 != 6 || quote[6] != protoIPIP && quote[6] != protoIPv6,
		[16]byte(quote[8:24]) != [16]byte(header[24:40]):
		return nil, ErrNotTunnelError
	}
	// RFC 4884 §4.2: in units of 8 bytes, and not in all types.
	if n := int(icmp[4]) * 8; n > 0 && n < len(quote) && (icmp[0] == icmp6Unreachable || icmp[0] == icmp6TimeExceeded) {
		quote = quote[:n]
	}
	outer := icmp[icmpHeader:]
	inner = quote[min(ip6Overhead, len(quote)):]
	if outer[6] == protoIPIP {
		return inner, quotable4(inner)
	}
	if err := quotable6(inner); err != nil {
		return nil, err
	}
	if [16]byte(inner[8:24]) != [16]byte(outer[8:24]) {
		return nil, ErrNotTunnelError
	}
	return inner, nil
}

// quotable6 checks what an error quotes of an inner IPv6 packet.
func quotable6(inner []byte) error {
	switch {
	case len(inner) < 1:
		return ErrTruncated
	case inner[0]>>4 != 6:
		return ErrVersion
	case len(inner) < ip6Overhead+icmpQuote:
		return ErrTruncated
	case inner[6] == protoIPIP || inner[6] == protoIPv6:
		return ErrNested
	}
	return nil
}

// innerCode6 is innerCode for ICMPv6: the code of ICMP's unreachable (RFC 2473 §8.2; RFC
// 7915 §5.2).
func innerCode6(kind, code byte) (byte, bool) {
	switch kind {
	case icmp6TooBig:
		return icmpTooBig, true
	case icmp6TimeExceeded: // code 1 is of fragments, which the sender did not make
		return icmpHost, code == 0
	case icmp6BadParameter: // code 1: the switch knows nothing of what is inside
		return icmpHost, code == 1
	}
	switch code {
	case 0:
		return icmpNet, true
	case 2, 3:
		return icmpHost, true
	case 1, 5, 6:
		return icmpProhibited, true
	}
	return 0, false // 4 is a port
}

// putError6 writes an ICMPv6 error about inner to the beginning of b. inner lies further on
// in b, 48 bytes at least. from is the source, nil for the inner packet's destination.
func putError6(b []byte, from *[16]byte, inner []byte, code byte, mtu int) (packet, about []byte) {
	h := ip6Header{0: 0x60, 6: protoICMPv6, 7: hopLimit}
	copy(h[8:24], inner[24:40])
	if from != nil {
		copy(h[8:24], from[:])
	}
	copy(h[24:40], inner[8:24])
	const at = ip6Overhead + icmpHeader
	n := at + copy(b[at:min(len(b), mostError6)], inner)
	copy(b, h[:])
	binary.BigEndian.PutUint16(b[4:], uint16(n-ip6Overhead))
	icmp := b[ip6Overhead:n:n]
	clear(icmp[:icmpHeader])
	if code == icmpTooBig {
		icmp[0] = icmp6TooBig
		binary.BigEndian.PutUint32(icmp[4:], uint32(max(mtu, leastMTU6)))
	} else {
		icmp[0] = icmp6Unreachable
		if int(code) < len(codes6) {
			icmp[1] = codes6[code]
		}
	}
	binary.BigEndian.PutUint16(icmp[2:], ^fold(sumICMP6(b[:ip6Overhead], icmp)))
	return b[:n:n], icmp[icmpHeader:]
}

// aboutError6 is aboutError for IPv6 (RFC 4443 §2.4). Extension headers are not followed.
func aboutError6(b []byte) bool {
	return b[6] == protoICMPv6 && (b[ip6Overhead] < icmp6Query || b[ip6Overhead] == icmp6Redirect)
}

// sumICMP6 adds up what an ICMPv6 checksum covers, that field included (RFC 4443 §2.3).
func sumICMP6(header, icmp []byte) uint64 {
	return sumBytes(header[8:40]) + uint64(len(icmp)) + protoICMPv6 + sumBytes(icmp)
}
