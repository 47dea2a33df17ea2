package encap

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

const (
	ip6Overhead = 40
	hopLimit    = 64 // as ttl: RFC 2473 §6.3 leaves it to the tunnel
	hopByHop    = 0  // the next header that only a jumbogram has without a payload length
)

// ip6Header is an IPv6 outer header, complete except for the fields that depend on the
// packet. It stands alone: no routing header, since all labels are in the destination (RFC
// 8986 §5.2, H.Encaps.Red with one SID), and no Tunnel Encapsulation Limit (RFC 2473 §4.1.1),
// since a switch would look at such an option in software. Nested tunnels are refused instead
// (ErrNested).
//
// # The flow label is 0
//
// RFC 6438 wants a tunnel's flow label to vary with the flow inside, so that equal-cost
// routes and bundles of links share the load. Switches hash it for that. Here the sender has
// chosen the path, and the label is 0 in every packet, for three reasons.
//
//   - All packets to a bouncing switch take one way, if switches hash addresses and label.
//     A flowcell keeps its order only on one way.
//   - Probes have the same outer header as data. So they show what happens to data. If
//     labels varied, a probe would test one link of a bundle, and data would vanish on
//     another.
//   - IPv4 has no such field, so both families behave alike, and `weft paths` is right for
//     both.
//
// The price is paid at parallel links below a bouncing switch: what one host sends to one
// bouncing switch uses one of them. Different hosts and switches use different ones. A
// router that fills a label of 0 (RFC 6437 §3) does so from the addresses, which are the
// same in all these packets. The datagrams of a UDP tunnel have their path in the source
// port, and their label is the kernel's, one for each source port: it follows RFC 6438.
type ip6Header [ip6Overhead]byte

func newIP6(src, dst netip.Addr) (ip6Header, error) {
	for _, a := range []struct {
		what string
		netip.Addr
	}{{"source", src}, {"destination", dst}} {
		if !plain6(a.Addr) {
			return ip6Header{}, fmt.Errorf("encap: %s address %v is not IPv6 without a zone", a.what, a.Addr)
		}
	}
	h := ip6Header{0: 0x60, 6: protoIPIP, 7: hopLimit}
	from, to := src.As16(), dst.As16()
	copy(h[8:], from[:])
	copy(h[24:], to[:])
	return h, nil
}

// plain6 reports whether an address can stand in an IPv6 header.
func plain6(a netip.Addr) bool { return a.Is6() && !a.Is4In6() && a.Zone() == "" }

// encapsulate writes the header into b[:ip6Overhead], the headroom, for the IPv4 or IPv6
// packet behind it (RFC 2473 §5). An IPv6 packet gets the destination dst6.
func (h *ip6Header) encapsulate(b []byte, dst6 *[16]byte) error {
	if len(b) < ip6Overhead+20 {
		return ErrTruncated
	}
	inner := b[ip6Overhead:]
	_, length, err := lengths(inner) // no more than a payload length can say
	if err != nil {
		if inner[0]>>4 == 6 {
			return h.encapsulate6(b, dst6)
		}
		return err
	}
	h.put(b, outerClass(inner[1]), length)
	return nil
}

// encapsulate6 is encapsulate for an IPv6 packet.
func (h *ip6Header) encapsulate6(b []byte, dst6 *[16]byte) error {
	inner := b[ip6Overhead:]
	length, err := length6(inner)
	if err != nil {
		return err
	}
	if length > 0xffff {
		return ErrTooLong
	}
	h.put(b, outerClass(class6(inner)), length)
	b[6] = protoIPv6
	copy(b[24:], dst6[:])
	return nil
}

// put writes the header for an IPv4 packet of length bytes.
func (h *ip6Header) put(b []byte, tos byte, length int) {
	*(*ip6Header)(b) = *h
	b[0] |= tos >> 4
	b[1] = tos << 4
	binary.BigEndian.PutUint16(b[4:], uint16(length))
}

// outerClass is the outer header's TOS or traffic class for an inner one: DSCP and ECN by
// RFC 2983 §3.1, the uniform model, and RFC 6040 §4.1.
func outerClass(inner byte) byte {
	return inner&^ecnMask | byte(encapsulateECN(ECN(inner&ecnMask)))
}

// length6 returns the length of the IPv6 packet that b starts with: 40 <= length <= len(b).
// A packet without a payload length but with a hop-by-hop header is a jumbogram (RFC 2675
// §2), the form in which a kernel has BIG TCP's super-segments.
func length6(b []byte) (int, error) {
	switch {
	case len(b) == 0:
		return 0, ErrTruncated
	case b[0]>>4 != 6:
		return 0, ErrVersion
	case len(b) < ip6Overhead:
		return 0, ErrTruncated
	}
	payload := int(binary.BigEndian.Uint16(b[4:]))
	if payload == 0 && b[6] == hopByHop {
		return 0, ErrJumbo
	}
	if ip6Overhead+payload > len(b) {
		return 0, ErrTruncated
	}
	return ip6Overhead + payload, nil
}

// class6 is the traffic class of an IPv6 header, which is what IPv4 calls TOS.
func class6(b []byte) byte { return b[0]<<4 | b[1]>>4 }

// putECN6 writes an ECN field into an IPv6 header.
func putECN6(b []byte, ecn ECN) { b[1] = b[1]&^(ecnMask<<4) | byte(ecn)<<4 }
