package encap

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrNotSRv6 says that a packet is not weft's: it is not IPv6, or has neither an IPv4 nor
// an IPv6 packet right behind the header.
var ErrNotSRv6 = errors.New("encap: not an IPv6 packet with an IP packet inside")

// newSRv6 returns an IPv6 header without a routing header (RFC 8986 §5.2, H.Encaps.Red
// with one SID): all labels are in the destination.
func newSRv6(src, sids netip.Addr) (ip6Header, error) {
	if _, err := ParseSIDs(sids); err != nil {
		return ip6Header{}, fmt.Errorf("encap: labels %v: %w", sids, err)
	}
	return newIP6(src, sids)
}

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
