package elephant

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Protocols whose flows are counted and pinned.
const (
	TCP = 6
	UDP = 17
)

// Flow is a five-tuple.
type Flow struct {
	Src, Dst netip.AddrPort // of one family, not mapped
	Protocol uint8
}

func (f Flow) String() string {
	name := fmt.Sprint(f.Protocol)
	switch f.Protocol {
	case TCP:
		name = "tcp"
	case UDP:
		name = "udp"
	}
	return fmt.Sprintf("%s %v > %v", name, f.Src, f.Dst)
}

// Check says why the programs cannot know a flow.
func (f Flow) Check() error {
	src, dst := f.Src.Addr(), f.Dst.Addr()
	switch {
	case f.Protocol != TCP && f.Protocol != UDP:
		return fmt.Errorf("flow %v: protocol is %d, must be %d (TCP) or %d (UDP)", f, f.Protocol, TCP, UDP)
	case !src.IsValid() || !dst.IsValid() || src.BitLen() != dst.BitLen():
		return fmt.Errorf("flow %v: the addresses are not of one family", f)
	case src.Is4In6() || dst.Is4In6() || src.Zone() != "" || dst.Zone() != "":
		return fmt.Errorf("flow %v: an address is mapped or has a zone; give it plain", f)
	}
	return nil
}

// Key is a flow as the programs' maps have it: struct five_tuple of elephant.h.
type Key struct {
	Src, Dst         [16]byte // IPv4 mapped
	SrcPort, DstPort [2]byte
	Protocol         uint32
}

// Key returns the flow's.
func (f Flow) Key() Key {
	k := Key{Src: f.Src.Addr().As16(), Dst: f.Dst.Addr().As16(), Protocol: uint32(f.Protocol)}
	binary.BigEndian.PutUint16(k.SrcPort[:], f.Src.Port())
	binary.BigEndian.PutUint16(k.DstPort[:], f.Dst.Port())
	return k
}

// Flow returns the key's.
func (k Key) Flow() Flow {
	at := func(a [16]byte, port [2]byte) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom16(a).Unmap(), binary.BigEndian.Uint16(port[:]))
	}
	return Flow{Src: at(k.Src, k.SrcPort), Dst: at(k.Dst, k.DstPort), Protocol: uint8(k.Protocol)}
}
