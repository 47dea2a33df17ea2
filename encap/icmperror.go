package encap

import (
	"encoding/binary"
	"errors"
)

// Errors of InnerError, besides those of Decapsulate. They are returned unwrapped, and
// callers count by them.
var (
	ErrNotTunnelError = errors.New("encap: not an ICMP error about an IP-in-IP packet that its receiver has sent")
	ErrOurOwn         = errors.New("encap: ICMP error that concerns the tunnel alone (RFC 2003 §4)")
)

const (
	protoICMP  = 1
	icmpHeader = 8
	icmpQuote  = 8 // of the transport header, what an error quotes at least (RFC 792)

	icmpUnreachable  = 3
	icmpTimeExceeded = 11
	icmpBadParameter = 12
)

// Codes of icmpUnreachable.
const (
	icmpHost      = 1
	icmpProtocol  = 2
	icmpPort      = 3
	icmpTooBig    = 4
	icmpRouteFail = 5
)

// leastMTU is the least that InnerError reports, in bytes; it is Linux's own
// net.ipv4.route.min_pmtu. A switch that reports none (from before RFC 1191), or a forger
// who reports 60, must not make a connection send tiny packets.
const leastMTU = 552

// InnerError translates an ICMP error in b about a packet that Encapsulate has wrapped.
// The result is the error that the inner packet's sender must get (RFC 2003 §4, §5.1; RFC
// 2473 §8; RFC 4213 §3.4): it quotes the inner packet and is of its family, and its MTU
// leaves room for the outer header. InnerError works in place and returns the packet,
// without padding, in the bytes of b. The source remains the switch that has reported the
// error. If that has no address of the inner packet's family, the source is the inner
// packet's destination. about is the quoted part of the inner packet, in the bytes of packet.
//
// ErrNotTunnelError is checked first and cheaply. It is also the error if the inner
// packet's source is not the tunnel's own. If outer and inner header are of different
// families, the caller must find out whether packet is addressed to it. ErrTruncated: the
// switch has quoted only the outer header and 8 bytes, as RFC 792 asks for. b is unchanged
// after any error.
func InnerError(b []byte) (packet, about []byte, err error) {
	if len(b) > 0 && b[0]>>4 == 6 {
		return innerError6(b)
	}
	if len(b) >= 20 && b[0]>>4 == 4 && (b[9] != protoICMP || binary.BigEndian.Uint16(b[6:])&fragmentMask != 0) {
		return nil, nil, ErrNotTunnelError
	}
	header, icmp, err := split(b)
	if err != nil {
		return nil, nil, err
	}
	if len(icmp) < icmpHeader {
		return nil, nil, ErrTruncated
	}
	inner, err := quoted(header, icmp)
	if err != nil {
		return nil, nil, err
	}
	if ^fold(sumBytes(icmp)) != 0 {
		return nil, nil, ErrChecksum
	}
	code, ok := innerCode(icmp[0], icmp[1], inner)
	if !ok {
		return nil, nil, ErrOurOwn
	}
	mtu := int(binary.BigEndian.Uint16(icmp[6:])) - Overhead
	if inner[0]>>4 == 6 {
		packet, about = putError6(b, nil, inner, code, mtu)
	} else {
		packet, about = putError4(b, len(header), inner, code, mtu)
	}
	return packet, about, nil
}

// putError4 writes an ICMP unreachable about inner behind the first ihl bytes of b, an IPv4
// header of which it updates length and checksum. inner lies further on in b.
func putError4(b []byte, ihl int, inner []byte, code byte, mtu int) (packet, about []byte) {
	header, icmp := b[:ihl], b[ihl:]
	n := icmpHeader + copy(icmp[icmpHeader:], inner)
	icmp = icmp[:n:n]
	clear(icmp[:icmpHeader])
	icmp[0], icmp[1] = icmpUnreachable, code
	if code == icmpTooBig {
		binary.BigEndian.PutUint16(icmp[6:], uint16(min(max(mtu, leastMTU), 0xffff)))
	}
	binary.BigEndian.PutUint16(icmp[2:], ^fold(sumBytes(icmp)))

	n += ihl
	binary.BigEndian.PutUint16(header[2:], uint16(n))
	clear(header[10:12])
	binary.BigEndian.PutUint16(header[10:], ^fold(sum(header)))
	return b[:n:n], icmp[icmpHeader:]
}

// quoted returns what an ICMP error about a packet of ours quotes of the inner
// packet: a whole header and the ports at least.
func quoted(header, icmp []byte) (inner []byte, err error) {
	quote := icmp[icmpHeader:]
	switch t := icmp[0]; {
	case t != icmpUnreachable && t != icmpTimeExceeded && t != icmpBadParameter,
		len(quote) < Overhead || quote[0] != 0x45 || quote[9] != protoIPIP && quote[9] != protoIPv6,
		[4]byte(quote[12:16]) != [4]byte(header[16:20]):
		return nil, ErrNotTunnelError
	}
	// RFC 4884: behind the quote there may be something else.
	if n := int(icmp[5]) * 4; n > 0 && n < len(quote) {
		quote = quote[:n]
	}
	outer := icmp[icmpHeader:]
	inner = quote[min(Overhead, len(quote)):]
	if outer[9] == protoIPv6 {
		return inner, quotable6(inner)
	}
	if err := quotable4(inner); err != nil {
		return nil, err
	}
	if [4]byte(inner[12:16]) != [4]byte(outer[12:16]) {
		return nil, ErrNotTunnelError
	}
	return inner, nil
}

// quotable4 checks what an error quotes of an inner IPv4 packet. The packet has been cut
// off: its length says nothing.
func quotable4(inner []byte) error {
	switch {
	case len(inner) < 20:
		return ErrTruncated
	case inner[0]>>4 != 4:
		return ErrVersion
	case inner[0]&0xf < 5:
		return ErrIHL
	case len(inner) < int(inner[0]&0xf)*4+icmpQuote:
		return ErrTruncated
	case inner[9] == protoIPIP:
		return ErrNested
	}
	return nil
}

// innerCode returns the code of the unreachable that an error about the outer
// packet means to the inner one's sender, and false if it means nothing.
func innerCode(kind, code byte, inner []byte) (byte, bool) {
	if aboutError(inner) {
		return 0, false
	}
	switch kind {
	case icmpTimeExceeded: // code 1 is of fragments, which the sender did not make
		return icmpHost, code == 0
	case icmpBadParameter: // the outer header is of our making
		return 0, false
	}
	switch code {
	case icmpProtocol: // the sender knows nothing of protocol 4
		return icmpHost, true
	case icmpPort, icmpRouteFail:
		return 0, false
	}
	return code, true
}

// aboutError reports whether a packet is no ICMP query but an error, about which
// there must be no other (RFC 1122 §3.2.2), or a fragment behind the first.
func aboutError(b []byte) bool {
	if b[0]>>4 == 6 {
		return aboutError6(b)
	}
	if binary.BigEndian.Uint16(b[6:])&(fragmentMask&^flagMF) != 0 {
		return true
	}
	if b[9] != protoICMP {
		return false
	}
	switch b[int(b[0]&0xf)*4] {
	case 0, 8, 9, 10, 13, 14, 15, 16, 17, 18: // RFC 792, 950 and 1256
		return false
	}
	return true
}

// sumBytes adds up the 16-bit words of b.
func sumBytes(b []byte) (s uint64) {
	for ; len(b) >= 2; b = b[2:] {
		s += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	return s
}
