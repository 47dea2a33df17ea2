package flowcell

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
)

// Protocol numbers (IANA).
const (
	ProtoICMP = 1
	ProtoIPIP = 4
	ProtoTCP  = 6
	ProtoUDP  = 17
)

// FiveTuple identifies a flow in one direction. It is a comparable value.
// Addresses are in 16-byte form, IPv4 mapped (RFC 4291 §2.5.5.2). Ports are
// zero where the protocol has none and in fragments.
type FiveTuple struct {
	Src, Dst         [16]byte
	SrcPort, DstPort uint16
	Proto            uint8
}

func (t FiveTuple) String() string {
	return fmt.Sprintf("%d %v > %v", t.Proto,
		netip.AddrPortFrom(netip.AddrFrom16(t.Src).Unmap(), t.SrcPort),
		netip.AddrPortFrom(netip.AddrFrom16(t.Dst).Unmap(), t.DstPort))
}

// Hash mixes the five-tuple with a seed. It is the ECMP hash of weft's own
// per-flow rule: equal for all packets of a flow, spread evenly over flows.
func (t FiveTuple) Hash(seed uint64) uint64 {
	h := seed ^ 0x9e3779b97f4a7c15
	h = mix(h, binary.LittleEndian.Uint64(t.Src[0:]), binary.LittleEndian.Uint64(t.Src[8:]))
	h = mix(h, binary.LittleEndian.Uint64(t.Dst[0:]), binary.LittleEndian.Uint64(t.Dst[8:]))
	h = mix(h, uint64(t.SrcPort)<<32|uint64(t.DstPort)<<16|uint64(t.Proto), 0xd6e8feb86659fd93)
	// Without a finalizer (MurmurHash3's) two seeds would choose alike for
	// flows that differ in a port only, and switches in a row would polarise.
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// mix folds a 128-bit product, as wyhash does.
func mix(h, a, b uint64) uint64 {
	hi, lo := bits.Mul64(h^a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)
	return hi ^ lo ^ h
}
