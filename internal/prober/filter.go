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

// tooBig is ICMP's type and code of "fragmentation needed" (RFC 792).
const tooBig = 3<<8 | 4

// acceptAll lets the whole packet through a socket's filter.
const acceptAll = 1 << 18

// protoICMP is ICMP's number in an IPv4 header.
const protoICMP = 1

// filter is the classic BPF program of a socket that gets what comes in by UDP for
// an address and a port, and nothing else; with errors also ICMP's "fragmentation
// needed".
func filter(self netip.Addr, port uint16, errors bool) ([]bpf.RawInstruction, error) {
	const packetHost = 0 // linux/if_packet.h: to this device's MAC address
	a := self.As4()
	var code []bpf.Instruction
	require := func(load bpf.Instruction, cond bpf.JumpTest, val uint32) {
		code = append(code, load, bpf.JumpIf{Cond: cond, Val: val, SkipTrue: 1}, bpf.RetConstant{})
	}
	require(bpf.LoadExtension{Num: bpf.ExtType}, bpf.JumpEqual, packetHost)
	require(bpf.LoadAbsolute{Off: offEtherType, Size: 2}, bpf.JumpEqual, 0x0800)
	require(bpf.LoadAbsolute{Off: offVersion, Size: 1}, bpf.JumpEqual, 0x45)
	require(bpf.LoadAbsolute{Off: offFragment, Size: 2}, bpf.JumpBitsNotSet, 0x3fff)
	require(bpf.LoadAbsolute{Off: offDst, Size: 4}, bpf.JumpEqual, binary.BigEndian.Uint32(a[:]))
	if errors {
		code = append(code, bpf.LoadAbsolute{Off: offProtocol, Size: 1},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: protoICMP, SkipTrue: 4},
			bpf.LoadAbsolute{Off: offICMP, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: tooBig, SkipTrue: 1},
			bpf.RetConstant{}, bpf.RetConstant{Val: acceptAll})
	}
	require(bpf.LoadAbsolute{Off: offProtocol, Size: 1}, bpf.JumpEqual, 17)
	require(bpf.LoadAbsolute{Off: offDstPort, Size: 2}, bpf.JumpEqual, uint32(port))
	return bpf.Assemble(append(code, bpf.RetConstant{Val: acceptAll}))
}
