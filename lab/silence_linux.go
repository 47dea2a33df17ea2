package lab

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// controlPort is the UDP port of the switches' messages to each other, which a
// failure of data alone lets pass.
const controlPort = 9338

// silencer returns the program that drops what comes in at the ends of a link
// that has failed silently. It is loaded once and kept, with l.mu held.
func (l *Lab) silencer(mode FailureMode) (*ebpf.Program, error) {
	if p := l.silencers[mode]; p != nil {
		return p, nil
	}
	spec := &ebpf.ProgramSpec{Name: "weft_silent", Type: ebpf.SchedCLS, Instructions: silence(mode)}
	var o struct {
		Prog *ebpf.Program `ebpf:"weft_silent"`
	}
	all := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"weft_silent": spec}}
	if err := kernel.Load(all, &o, kernel.TCNeeds); err != nil {
		return nil, err
	}
	l.silencers[mode] = o.Prog
	return o.Prog, nil
}

// silence is the program of a silent failure. It drops all frames. In a failure of data it
// drops, of IPv4, all but the messages of weft's agents, which have no options, and of IPv6,
// all but what is from link-local addresses, as BGP's and BFD's messages are.
func silence(mode FailureMode) asm.Instructions {
	drop := asm.Instructions{asm.Mov.Imm(asm.R0, kernel.TCShot).WithSymbol("drop"), asm.Return()}
	if mode == FailSilent {
		return drop
	}
	const (
		skbLen     = 0 // offset in struct __sk_buff
		etherType  = 12
		ipVersion  = kernel.EthernetHeader
		ip6From    = kernel.EthernetHeader + 8
		ipProtocol = kernel.EthernetHeader + 9
		udpTo      = kernel.EthernetHeader + 20 + 2
	)
	return append(asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1), // where LoadAbs expects the packet
		asm.LoadAbs(etherType, asm.Half),
		asm.JNE.Imm(asm.R0, unix.ETH_P_IP, "other"),
		asm.LoadMem(asm.R2, asm.R6, skbLen, asm.Word),
		asm.JLT.Imm(asm.R2, udpTo+2, "drop"), // LoadAbs would let it pass
		asm.LoadAbs(ipVersion, asm.Byte),
		asm.JNE.Imm(asm.R0, 0x45, "drop"),
		asm.LoadAbs(ipProtocol, asm.Byte),
		asm.JNE.Imm(asm.R0, unix.IPPROTO_UDP, "drop"),
		asm.LoadAbs(udpTo, asm.Half),
		asm.JNE.Imm(asm.R0, controlPort, "drop"),
		asm.Ja.Label("pass"),
		asm.JNE.Imm(asm.R0, unix.ETH_P_IPV6, "pass").WithSymbol("other"),
		asm.LoadAbs(ip6From, asm.Half),
		asm.And.Imm(asm.R0, 0xffc0),
		asm.JNE.Imm(asm.R0, 0xfe80, "drop"),
		asm.Mov.Imm(asm.R0, kernel.TCUnspec).WithSymbol("pass"),
		asm.Return(),
	}, drop...)
}
