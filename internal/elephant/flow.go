package elephant

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
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

// protocolNames are as String has them. Other protocols are numbers.
var protocolNames = map[uint8]string{TCP: "tcp", UDP: "udp"}

// String is what ParseFlow reads.
func (f Flow) String() string {
	name, ok := protocolNames[f.Protocol]
	if !ok {
		name = fmt.Sprint(f.Protocol)
	}
	return fmt.Sprintf("%s %v > %v", name, f.Src, f.Dst)
}

// ParseFlow reads a flow as String writes it, such as "tcp 10.0.0.2:5000 > 10.1.0.2:80".
func ParseFlow(text string) (f Flow, err error) {
	words := strings.Split(text, " ")
	if len(words) != 4 || words[2] != ">" {
		return f, fmt.Errorf("flow %q: must be like tcp 10.0.0.2:5000 > 10.1.0.2:80", text)
	}
	if f.Protocol, err = parseProtocol(words[0]); err != nil {
		return f, fmt.Errorf("flow %q: protocol: %w", text, err)
	}
	if f.Src, err = netip.ParseAddrPort(words[1]); err != nil {
		return f, fmt.Errorf("flow %q: source: %w", text, err)
	}
	if f.Dst, err = netip.ParseAddrPort(words[3]); err != nil {
		return f, fmt.Errorf("flow %q: destination: %w", text, err)
	}
	return f, nil
}

func parseProtocol(name string) (uint8, error) {
	for p, n := range protocolNames {
		if n == name {
			return p, nil
		}
	}
	n, err := strconv.ParseUint(name, 10, 8)
	return uint8(n), err
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
