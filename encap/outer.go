package encap

import (
	"fmt"
	"net/netip"
)

// MaxOverhead is the headroom that every Outer fits into, in bytes.
const MaxOverhead = ip6Overhead

// Outer is an outer header of a carrier that IP itself forwards, complete except for the
// fields that depend on the packet. It is an immutable, comparable value, safe for
// concurrent use. The zero value encapsulates nothing; its error is ErrVersion.
type Outer struct {
	carrier Carrier
	ready   bool
	six     bool // the header is IPv6
	ipip    IPIP
	ip6     ip6Header
	dst6    [16]byte // the destination of ip6 for an IPv6 packet inside
}

// NewIPIPOuter returns the outer header of a bounce at dst (DRB §3.1.1). Both addresses are
// IPv4 (RFC 2003, 4213) or both IPv6 (RFC 2473). Errors name the wrong address.
func NewIPIPOuter(src, dst netip.Addr) (Outer, error) {
	if dst = dst.Unmap(); dst.Is6() {
		return newOuter6(CarrierIPIP, src, dst, dst)
	}
	h, err := NewIPIP(src, dst)
	return Outer{carrier: CarrierIPIP, ready: err == nil, ipip: h}, err
}

// NewSRv6Outer returns the outer header of packets that follow the labels in sids, an
// address from SIDs. src is the sender's IPv6 address. Errors name the wrong address.
func NewSRv6Outer(src, sids netip.Addr) (Outer, error) {
	if _, err := ParseSIDs(sids); err != nil {
		return Outer{carrier: CarrierSRv6, six: true}, fmt.Errorf("encap: labels %v: %w", sids, err)
	}
	o, err := newOuter6(CarrierSRv6, src, sids, sids)
	endIn6(&o.dst6)
	return o, err
}

// NewSIDOuter returns the outer header of packets to a switch that takes it off: an IPv4 packet
// at sid4, an IPv6 packet at sid6. These are SIDs of an operator, whose functions are End.DT4,
// End.DX4, End.DT6 or, as both, End.DT46 (RFC 8986 §4). src is the sender's IPv6 address. Errors
// name the wrong address.
func NewSIDOuter(src, sid4, sid6 netip.Addr) (Outer, error) {
	return newOuter6(CarrierSRv6, src, sid4, sid6)
}

// newOuter6 returns an IPv6 outer header with a destination for each family inside.
func newOuter6(c Carrier, src, dst4, dst6 netip.Addr) (Outer, error) {
	o := Outer{carrier: c, six: true}
	if _, err := newIP6(src, dst6); err != nil {
		return o, err
	}
	var err error
	o.ip6, err = newIP6(src, dst4)
	o.ready, o.dst6 = err == nil, dst6.As16()
	return o, err
}

// Overhead returns the length of the header in bytes.
func (o *Outer) Overhead() int {
	if o.six {
		return ip6Overhead
	}
	return Overhead
}

// Encapsulate writes the header right before the IPv4 or IPv6 packet in b[MaxOverhead:],
// which it does not change, and returns b from the header on. DSCP and ECN are copied from
// the inner packet. id is the ID of an IPv4 outer header, whose DF is set if the inner packet
// is IPv6. An IPv6 header has none, and its flow label stays 0. IPIP.Encapsulate says what is not checked.
//
// Errors: ErrTruncated, ErrVersion, ErrIHL, ErrTooLong, ErrJumbo; b is then unchanged.
func (o *Outer) Encapsulate(b []byte, id uint16) ([]byte, error) {
	if len(b) < MaxOverhead {
		return nil, ErrTruncated
	}
	if !o.ready {
		return nil, ErrVersion
	}
	b = b[MaxOverhead-o.Overhead():]
	var err error
	if o.six {
		err = o.ip6.encapsulate(b, &o.dst6)
	} else if err = o.ipip.Encapsulate(b, id); err == ErrVersion {
		err = o.ipip.encapsulate6(b, id)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}
