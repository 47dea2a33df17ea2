package prober

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/net/bpf"
)

// Offsets in an Ethernet frame with an IPv4 packet without options.
const (
	offEtherType = 12
	offIP        = 14
	offVersion   = offIP
	offFragment  = offIP + 6
	offProtocol  = offIP + 9
	offDst       = offIP + 16
	offDstPort   = offIP + 22
	offICMP      = offIP + 20
)

// Offsets in an Ethernet frame with an IPv6 packet without extension headers.
const (
	offProtocol6 = offIP + 6
	offDst6      = offIP + 24
	offDstPort6  = offIP + 42
	offICMP6     = offIP + 40
)

// ICMP's type and code of "fragmentation needed" (RFC 792), and ICMPv6's type of "packet too
// big" (RFC 4443 §3.2), whose code does not matter.
const (
	tooBig  = 3<<8 | 4
	tooBig6 = 2
)

// Numbers of protocols in an IP header.
const (
	protoICMP   = 1
	protoUDP    = 17
	protoICMPv6 = 58
)

// acceptAll lets the whole packet through a socket's filter.
const acceptAll = 1 << 18

// filter is the classic BPF program of a socket that gets what comes in by UDP for
// an address and a port, and nothing else; with errors also ICMP's "fragmentation
// needed", or ICMPv6's "packet too big".
func filter(self netip.Addr, port uint16, errors bool) ([]bpf.RawInstruction, error) {
	return bpf.Assemble(instructions(self, port, errors))
}

func instructions(self netip.Addr, port uint16, errors bool) (code []bpf.Instruction) {
	const packetHost = 0 // linux/if_packet.h: to this device's MAC address
	require := func(cond bpf.JumpTest, val uint32, loads ...bpf.Instruction) {
		code = append(append(code, loads...), bpf.JumpIf{Cond: cond, Val: val, SkipTrue: 1}, bpf.RetConstant{})
	}
	offProtocol, offDstPort := uint32(offProtocol), uint32(offDstPort)
	protocol, offError, sizeError, wanted := uint32(protoICMP), uint32(offICMP), 2, uint32(tooBig)
	require(bpf.JumpEqual, packetHost, bpf.LoadExtension{Num: bpf.ExtType})
	if self.Is6() {
		offProtocol, offDstPort = offProtocol6, offDstPort6
		protocol, offError, sizeError, wanted = protoICMPv6, offICMP6, 1, tooBig6
		a := self.As16()
		require(bpf.JumpEqual, 0x86dd, bpf.LoadAbsolute{Off: offEtherType, Size: 2})
		require(bpf.JumpEqual, 0x60, bpf.LoadAbsolute{Off: offVersion, Size: 1}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf0})
		for i := 0; i < len(a); i += 4 {
			require(bpf.JumpEqual, binary.BigEndian.Uint32(a[i:]), bpf.LoadAbsolute{Off: uint32(offDst6 + i), Size: 4})
		}
	} else {
		a := self.As4()
		require(bpf.JumpEqual, 0x0800, bpf.LoadAbsolute{Off: offEtherType, Size: 2})
		require(bpf.JumpEqual, 0x45, bpf.LoadAbsolute{Off: offVersion, Size: 1})
		require(bpf.JumpBitsNotSet, 0x3fff, bpf.LoadAbsolute{Off: offFragment, Size: 2})
		require(bpf.JumpEqual, binary.BigEndian.Uint32(a[:]), bpf.LoadAbsolute{Off: offDst, Size: 4})
	}
	if errors {
		code = append(code, bpf.LoadAbsolute{Off: offProtocol, Size: 1},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: protocol, SkipTrue: 4},
			bpf.LoadAbsolute{Off: offError, Size: sizeError},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: wanted, SkipTrue: 1},
			bpf.RetConstant{}, bpf.RetConstant{Val: acceptAll})
	}
	require(bpf.JumpEqual, protoUDP, bpf.LoadAbsolute{Off: offProtocol, Size: 1})
	require(bpf.JumpEqual, uint32(port), bpf.LoadAbsolute{Off: offDstPort, Size: 2})
	return append(code, bpf.RetConstant{Val: acceptAll})
}
