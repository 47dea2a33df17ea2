package encap

import "encoding/binary"

// Decapsulate checks both headers of an IP-in-IP packet and returns the inner packet,
// without padding, in the bytes of b. It writes the resulting ECN field into the inner
// header (RFC 6040 §4.2).
//
// ErrNotIPIP is checked first and cheaply: the packet is not weft's. Other errors:
// ErrTruncated, ErrVersion, ErrIHL, ErrChecksum, ErrFragment, ErrNested, ErrECN; b is
// then unchanged.
func Decapsulate(b []byte) (inner []byte, err error) {
	if len(b) >= 20 && b[0]>>4 == 4 && b[9] != protoIPIP {
		return nil, ErrNotIPIP
	}
	outer, rest, err := split(b)
	if err != nil {
		return nil, err
	}
	if binary.BigEndian.Uint16(outer[6:])&fragmentMask != 0 {
		return nil, ErrFragment
	}
	return innerOf(rest, ECN(outer[1]&ecnMask))
}

// innerOf checks the inner packet that rest begins with, gives it what its ECN
// field has become on the way, and returns it without what is behind its end.
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
