package encap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// Overhead is the length of an IPv4 outer header in bytes. An MTU shrinks by it.
const Overhead = 20

const (
	protoIPIP = 4  // an IPv4 packet follows
	protoIPv6 = 41 // an IPv6 packet follows
	ttl       = 64 // RFC 2003 §3.1 leaves it to the tunnel; IANA's default

	flagDF       = 0x4000
	flagMF       = 0x2000
	fragmentMask = flagMF | 0x1fff // more fragments, or an offset
)

// Errors about packets. Callers count by them; they are returned unwrapped.
var (
	ErrTruncated = errors.New("encap: packet shorter than its headers say")
	ErrVersion   = errors.New("encap: neither an IPv4 nor an IPv6 packet, or not the one that the header before it says")
	ErrIHL       = errors.New("encap: IHL below 20 bytes")
	ErrTooLong   = errors.New("encap: longer than 65535 bytes with the outer header")
	ErrChecksum  = errors.New("encap: bad IPv4 header checksum")
	ErrNotIPIP   = errors.New("encap: not an IP-in-IP packet")
	ErrNested    = errors.New("encap: IP-in-IP inside IP-in-IP")
	ErrFragment  = errors.New("encap: outer packet is a fragment")
	ErrJumbo     = errors.New("encap: IPv6 jumbogram (RFC 2675), which no outer header has a length for")
	ErrECN       = errors.New("encap: congestion mark on a packet that cannot carry it (RFC 6040)")
)

// IPIP is an IPv4 outer header from one address to another, complete except for the
// fields that depend on the packet. It is an immutable value, safe for concurrent
// use.
type IPIP struct {
	header [Overhead]byte
	sum    uint64 // of header
}

// NewIPIP returns the outer header from src to dst, both IPv4.
func NewIPIP(src, dst netip.Addr) (IPIP, error) {
	src, dst = src.Unmap(), dst.Unmap()
	if !src.Is4() {
		return IPIP{}, fmt.Errorf("encap: source address %v is not IPv4", src)
	}
	if !dst.Is4() {
		return IPIP{}, fmt.Errorf("encap: destination address %v is not IPv4", dst)
	}
	var h IPIP
	h.header[0] = 0x45
	h.header[8] = ttl
	h.header[9] = protoIPIP
	copy(h.header[12:], src.AsSlice())
	copy(h.header[16:], dst.AsSlice())
	h.sum = sum(h.header[:])
	return h, nil
}

// Encapsulate writes the outer header of RFC 2003 §3.1 into b[:Overhead], the headroom,
// for the IPv4 packet in b[Overhead:], which it does not change. DF, DSCP and ECN are
// copied from the inner packet. id is the outer packet's ID, which matters only if that
// may be fragmented (RFC 6864 §4). Bytes behind the inner packet's end do not count.
// Outer.Encapsulate takes IPv6 as well.
//
// The inner checksum is not checked: the packet is the sender's own. Errors:
// ErrTruncated, ErrVersion, ErrIHL, ErrTooLong; b is then unchanged.
func (h *IPIP) Encapsulate(b []byte, id uint16) error {
	if len(b) < Overhead+20 {
		return ErrTruncated
	}
	inner := b[Overhead:]
	_, length, err := lengths(inner)
	if err != nil {
		return err
	}
	if length += Overhead; length > 0xffff {
		return ErrTooLong
	}
	tos := inner[1]&^ecnMask | byte(encapsulateECN(ECN(inner[1]&ecnMask)))
	flags := binary.BigEndian.Uint16(inner[6:]) & flagDF

	outer := b[:Overhead]
	*(*[Overhead]byte)(outer) = h.header
	outer[1] = tos
	binary.BigEndian.PutUint16(outer[2:], uint16(length))
	binary.BigEndian.PutUint16(outer[4:], id)
	binary.BigEndian.PutUint16(outer[6:], flags)
	s := h.sum + uint64(tos) + uint64(length) + uint64(id) + uint64(flags)
	binary.BigEndian.PutUint16(outer[10:], ^fold(s))
	return nil
}

// encapsulate6 is Encapsulate for an IPv6 packet (RFC 4213 §3.5), of which b has 20 bytes. DF
// is always set: nobody on the way may cut IPv6.
func (h *IPIP) encapsulate6(b []byte, id uint16) error {
	inner := b[Overhead:]
	length, err := length6(inner)
	if err != nil {
		return err
	}
	if length += Overhead; length > 0xffff {
		return ErrTooLong
	}
	outer := b[:Overhead]
	copy(outer, h.header[:])
	outer[1] = outerClass(class6(inner))
	binary.BigEndian.PutUint16(outer[2:], uint16(length))
	binary.BigEndian.PutUint16(outer[4:], id)
	binary.BigEndian.PutUint16(outer[6:], flagDF)
	outer[9] = protoIPv6
	binary.BigEndian.PutUint16(outer[10:], ^fold(sum(outer)))
	return nil
}

// lengths returns the header and total length of the IPv4 packet that b starts
// with, 20 <= ihl <= length <= len(b).
func lengths(b []byte) (ihl, length int, err error) {
	if len(b) < 20 {
		return 0, 0, ErrTruncated
	}
	if b[0]>>4 != 4 {
		return 0, 0, ErrVersion
	}
	if ihl = int(b[0]&0xf) * 4; ihl < 20 {
		return 0, 0, ErrIHL
	}
	if length = int(binary.BigEndian.Uint16(b[2:])); length < ihl || length > len(b) {
		return 0, 0, ErrTruncated
	}
	return ihl, length, nil
}
