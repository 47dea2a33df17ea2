package flowcell

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
)

// Protocol numbers that matter here.
const (
	ProtoICMP   = 1
	ProtoIPIP   = 4 // an IPv4 packet follows
	ProtoTCP    = 6
	ProtoUDP    = 17
	ProtoIPv6   = 41 // an IPv6 packet follows
	ProtoICMPv6 = 58
)

// Address is an IPv4 or IPv6 address as two numbers, which are faster to
// compare and to hash than bytes. IPv4 is in mapped form (RFC 4291 §2.5.5.2).
// It is a comparable value.
type Address struct{ hi, lo uint64 }

// mapped is what stands before an IPv4 address in the lower half.
const mapped = 0xffff << 32

// AddressFrom converts an address; its zone is lost.
func AddressFrom(a netip.Addr) Address {
	return AddressFrom16(a.As16())
}

// AddressFrom4 converts the bytes of an IPv4 address.
func AddressFrom4(b [4]byte) Address {
	return Address{0, mapped | uint64(binary.BigEndian.Uint32(b[:]))}
}

// AddressFrom16 converts the bytes of an IPv6 address.
func AddressFrom16(b [16]byte) Address {
	return Address{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// Is6 reports whether it is an IPv6 address.
func (a Address) Is6() bool { return a.hi != 0 || a.lo>>32 != mapped>>32 }

// IP converts back. A mapped address comes out as IPv4.
func (a Address) IP() netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], a.hi)
	binary.BigEndian.PutUint64(b[8:], a.lo)
	return netip.AddrFrom16(b).Unmap()
}

// isMapped reports an IPv4 address.
func (a Address) isMapped() bool { return a.hi == 0 && a.lo>>32 == mapped>>32 }

func (a Address) String() string { return a.IP().String() }

// FiveTuple identifies a flow in one direction. It is a comparable value.
// Ports are zero where the protocol has none and in fragments.
type FiveTuple struct {
	Src, Dst         Address
	SrcPort, DstPort uint16
	Proto            uint8
}

// Reverse is the same connection's flow the other way.
func (t FiveTuple) Reverse() FiveTuple {
	return FiveTuple{Src: t.Dst, Dst: t.Src, SrcPort: t.DstPort, DstPort: t.SrcPort, Proto: t.Proto}
}

func (t FiveTuple) String() string {
	return fmt.Sprintf("%d %v > %v", t.Proto,
		netip.AddrPortFrom(t.Src.IP(), t.SrcPort), netip.AddrPortFrom(t.Dst.IP(), t.DstPort))
}

// equal is ==, with one branch, and inlined.
func (t *FiveTuple) equal(u *FiveTuple) bool {
	return (t.Src.lo^u.Src.lo)|(t.Dst.lo^u.Dst.lo)|(t.Src.hi^u.Src.hi)|(t.Dst.hi^u.Dst.hi)|
		uint64((t.SrcPort^u.SrcPort)|(t.DstPort^u.DstPort))|uint64(t.Proto^u.Proto) == 0
}

// Hash mixes the five-tuple with a seed. It is the ECMP hash of weft's own per-flow rule:
// equal for all packets of a flow, spread evenly over flows. Without the seed nobody can
// choose five-tuples that collide.
func (t *FiveTuple) Hash(seed uint64) uint64 {
	// Both factors of every product depend on the seed: a factor that is zero
	// would let nothing of the other through. The first two do not wait for
	// one another.
	k := seed * 0x9e3779b97f4a7c15
	swapped := bits.RotateLeft64(k, 32)
	src := mix(t.Src.hi^k^0xa0761d6478bd642f, t.Src.lo^swapped^0xe7037ed1a0b428db)
	dst := mix(t.Dst.hi^k^0x8ebc6af09c88c6e3, t.Dst.lo^swapped^0x589965cc75374cc3)
	rest := uint64(t.SrcPort)<<32 | uint64(t.DstPort)<<16 | uint64(t.Proto)
	h := mix(src^rest^k, dst^swapped^0x1d8e4e27c47d124f)
	// Without a last round two seeds would choose alike for flows that differ
	// in a port only, and switches in a row would polarise.
	return mix(h^k, 0xd6e8feb86659fd93)
}

// mix folds a 128-bit product, as wyhash does.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
