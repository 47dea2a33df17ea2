package encap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

const (
	srv6Overhead = 40
	srv6HopLimit = 64
	srv6NextIPv4 = protoIPIP
)

// ErrNotSRv6 says that a packet is not weft's: it is not IPv6, or has no IPv4
// packet right behind the header.
var ErrNotSRv6 = errors.New("encap: not an IPv6 packet with an IPv4 packet inside")

// srv6Header is an IPv6 header without a routing header (RFC 8986 §5.2,
// H.Encaps.Red with one SID): all labels are in the destination.
type srv6Header [srv6Overhead]byte

func newSRv6(src, sids netip.Addr) (srv6Header, error) {
	if !src.Is6() || src.Is4In6() || src.Zone() != "" {
		return srv6Header{}, fmt.Errorf("encap: source address %v is not IPv6 without a zone", src)
	}
	if _, err := ParseSIDs(sids); err != nil {
		return srv6Header{}, fmt.Errorf("encap: labels %v: %w", sids, err)
	}
	h := srv6Header{0: 0x60, 6: srv6NextIPv4, 7: srv6HopLimit}
	from, to := src.As16(), sids.As16()
	copy(h[8:], from[:])
	copy(h[24:], to[:])
	return h, nil
}

// encapsulate writes the header into b[:srv6Overhead], the headroom. The flow
// label remains 0: nobody on the way is to choose by it.
func (h *srv6Header) encapsulate(b []byte) error {
	if len(b) < srv6Overhead+20 {
		return ErrTruncated
	}
	inner := b[srv6Overhead:]
	_, length, err := lengths(inner) // no more than a payload length can say
	if err != nil {
		return err
	}
	tos := inner[1]&^ecnMask | byte(encapsulateECN(ECN(inner[1]&ecnMask)))
	*(*srv6Header)(b) = *h
	b[0] |= tos >> 4
	b[1] = tos << 4
	binary.BigEndian.PutUint16(b[4:], uint16(length))
	return nil
}

// DecapsulateSRv6 is Decapsulate for an IPv6 packet with an IPv4 packet inside
// and no extension header between. The caller judges its addresses.
//
// ErrNotSRv6 is checked first and cheaply. Other errors: ErrTruncated, ErrVersion, ErrIHL,
// ErrChecksum, ErrNested, ErrECN; b is then unchanged.
func DecapsulateSRv6(b []byte) (inner []byte, err error) {
	if len(b) > 0 && b[0]>>4 != 6 || len(b) >= srv6Overhead && b[6] != srv6NextIPv4 {
		return nil, ErrNotSRv6
	}
	if len(b) < srv6Overhead {
		return nil, ErrTruncated
	}
	end := srv6Overhead + int(binary.BigEndian.Uint16(b[4:]))
	if end > len(b) {
		return nil, ErrTruncated
	}
	return innerOf(b[srv6Overhead:end], ECN(b[1]>>4&ecnMask))
}
