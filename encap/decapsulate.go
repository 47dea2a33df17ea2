package encap

import "encoding/binary"

// Decapsulate checks both headers of an IP-in-IP packet and returns the inner packet,
// without padding, in the bytes of b. Either header may be IPv4 or IPv6 (RFC 2003, 2473,
// 4213). It writes the resulting ECN field into the inner header (RFC 6040 §4.2).
//
// ErrNotIPIP is checked first and cheaply: the packet is not weft's. Other errors:
// ErrTruncated, ErrVersion, ErrIHL, ErrChecksum, ErrFragment, ErrNested, ErrECN, ErrJumbo;
// b is then unchanged.
func Decapsulate(b []byte) (inner []byte, err error) {
	if len(b) >= 20 && b[9] != protoIPIP && b[9] != protoIPv6 && b[0]>>4 == 4 {
		return nil, ErrNotIPIP
	}
	outer, rest, err := split(b)
	if err != nil {
		if len(b) > 0 && b[0]>>4 == 6 {
			return decapsulate6(b)
		}
		return nil, err
	}
	if binary.BigEndian.Uint16(outer[6:])&fragmentMask != 0 {
		return nil, ErrFragment
	}
	if outer[9] == protoIPv6 {
		return innerOf6(rest, ECN(outer[1]&ecnMask))
	}
	return innerOf(rest, ECN(outer[1]&ecnMask))
}

// decapsulate6 is Decapsulate for an IPv6 outer header. An extension header is not weft's,
// a fragment's neither.
func decapsulate6(b []byte) (inner []byte, err error) {
	if len(b) >= ip6Overhead && b[6] != protoIPIP && b[6] != protoIPv6 {
		return nil, ErrNotIPIP
	}
	n, err := length6(b)
	if err != nil {
		return nil, err
	}
	if b[6] == protoIPv6 {
		return innerOf6(b[ip6Overhead:n], ECN(class6(b)&ecnMask))
	}
	return innerOf(b[ip6Overhead:n], ECN(class6(b)&ecnMask))
}

// innerOf checks the inner IPv4 packet that rest begins with, gives it what its ECN
// field has become on the way, and returns it without what is behind its end.
//
// A packet must not bounce from switch to switch by one header inside the other. So what is
// in a tunnel must not be a tunnel, except for IPv6 in IPv4: hosts have such tunnels of their
// own, and there the nesting ends.
func innerOf(rest []byte, outer ECN) ([]byte, error) {
	header, payload, err := split(rest)
	if err != nil {
		return nil, err
	}
	if header[9] == protoIPIP {
		return nil, ErrNested
	}
	was := ECN(header[1] & ecnMask)
	ecn, ok := decapsulateECN(was, outer)
	if !ok {
		return nil, ErrECN
	}
	if ecn != was {
		from := binary.BigEndian.Uint16(header)
		to := from&^ecnMask | uint16(ecn)
		binary.BigEndian.PutUint16(header, to)
		checksum := binary.BigEndian.Uint16(header[10:])
		binary.BigEndian.PutUint16(header[10:], update(checksum, from, to))
	}
	n := len(header) + len(payload)
	return rest[:n:n], nil
}

// innerOf6 is innerOf for an IPv6 packet.
func innerOf6(rest []byte, outer ECN) ([]byte, error) {
	n, err := length6(rest)
	if err != nil {
		return nil, err
	}
	if rest[6] == protoIPIP || rest[6] == protoIPv6 {
		return nil, ErrNested
	}
	was := ECN(class6(rest) & ecnMask)
	ecn, ok := decapsulateECN(was, outer)
	if !ok {
		return nil, ErrECN
	}
	if ecn != was {
		putECN6(rest, ecn)
	}
	return rest[:n:n], nil
}

// split checks the IPv4 header at the start of b, its checksum included, and
// returns it with its options and what follows up to the packet's end.
func split(b []byte) (header, payload []byte, err error) {
	ihl, length, err := lengths(b)
	if err != nil {
		return nil, nil, err
	}
	if !valid(b[:ihl]) {
		return nil, nil, ErrChecksum
	}
	return b[:ihl], b[ihl:length], nil
}
