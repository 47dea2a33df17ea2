package encap

import "errors"

// ErrNotSRv6 says that a packet is not weft's: it is not IPv6, or has neither an IPv4 nor
// an IPv6 packet right behind the header.
var ErrNotSRv6 = errors.New("encap: not an IPv6 packet with an IP packet inside")

// DecapsulateSRv6 is Decapsulate for IPv6 outer headers alone, without extension headers.
// The caller judges the addresses.
//
// ErrNotSRv6 is checked first and cheaply. Other errors: ErrTruncated, ErrVersion, ErrIHL,
// ErrChecksum, ErrNested, ErrECN, ErrJumbo; b is then unchanged.
func DecapsulateSRv6(b []byte) (inner []byte, err error) {
	if len(b) > 0 && b[0]>>4 != 6 {
		return nil, ErrNotSRv6
	}
	if inner, err = decapsulate6(b); err == ErrNotIPIP {
		err = ErrNotSRv6
	}
	return inner, err
}
