package hostprog

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/net/bpf"

	"weft/internal/kernel"
)

// Offsets in an Ethernet frame with an IPv4 packet or, if they end in 6, an IPv6 packet.
const (
	offEtherType = 12
	offIP        = kernel.EthernetHeader
	offLength    = offIP + 2
	offFragment  = offIP + 6
	offProtocol  = offIP + 9
	offDst       = offIP + 16
	offPayload6  = offIP + 4
	offNext6     = offIP + 6
	offDst6      = offIP + 24
)

// acceptAll passes the whole packet: a socket filter's result is the number of
// bytes to keep.
const acceptAll = 1 << 18

// steerCode is a classic BPF program under construction. Each check returns by
// itself, since conditional jumps lead no further than 255 instructions.
type steerCode []bpf.Instruction

// reject ends the program with a packet left to the kernel.
func (c *steerCode) reject() { *c = append(*c, bpf.RetConstant{}) }

// accept ends it with the packet handed over.
func (c *steerCode) accept() { *c = append(*c, bpf.RetConstant{Val: acceptAll}) }

// load puts size bytes of the frame into A. A packet that is too short ends
// the program, rejected.
func (c *steerCode) load(off uint32, size int) {
	*c = append(*c, bpf.LoadAbsolute{Off: off, Size: size})
}

// loadBehind loads from behind the IP header, whose length X has.
func (c *steerCode) loadBehind(off uint32, size int) {
	*c = append(*c, bpf.LoadIndirect{Off: offIP + off, Size: size})
}

// require rejects unless A passes the test.
func (c *steerCode) require(cond bpf.JumpTest, val uint32) {
	*c = append(*c, bpf.JumpIf{Cond: cond, Val: val, SkipTrue: 1})
	c.reject()
}

// requireOneOf rejects unless A is one of the values.
func (c *steerCode) requireOneOf(vals ...uint32) {
	for i, v := range vals {
		*c = append(*c, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(vals) - i)})
	}
	c.reject()
}

// onlyIf runs body if A passes the test.
func (c *steerCode) onlyIf(cond bpf.JumpTest, val uint32, body func(*steerCode)) {
	var inner steerCode
	body(&inner)
	*c = append(*c, bpf.JumpIf{Cond: cond, Val: val, SkipTrue: 1}, bpf.Jump{Skip: uint32(len(inner))})
	*c = append(*c, inner...)
}

// steerProgram returns the socket filter for rules. It must take exactly what
// bpf/steer.c takes.
func steerProgram(rules []SteerRule, behind ...netip.Prefix) []bpf.Instruction {
	return append(steerDevice(), steerPacket(rules, behind...)...)
}

// steerDevice rejects what is not the device's own: packets to others' MAC
// addresses or sent by this host, and those of VLANs on top of the device.
func steerDevice() []bpf.Instruction {
	const packetHost = 0 // linux/if_packet.h
	var c steerCode
	c = append(c, bpf.LoadExtension{Num: bpf.ExtType})
	c.require(bpf.JumpEqual, packetHost)
	c = append(c, bpf.LoadExtension{Num: bpf.ExtVLANTagPresent})
	c.require(bpf.JumpEqual, 0)
	return c
}

// steerPacket looks at the frame.
func steerPacket(rules []SteerRule, behind ...netip.Prefix) []bpf.Instruction {
	var c steerCode
	c.load(offEtherType, 2)
	c.onlyIf(bpf.JumpEqual, 0x86dd, func(c *steerCode) { c.packet6(rules, behind) })
	c.require(bpf.JumpEqual, 0x0800)
	c.load(offDst, 4) // the whole header is there
	c.load(offIP, 1)
	c.require(bpf.JumpGreaterOrEqual, 0x45) // version 4 and 20 bytes at least
	c.require(bpf.JumpLessOrEqual, 0x4f)
	c.load(offProtocol, 1)
	c.require(bpf.JumpNotEqual, 4) // IP-in-IP
	c.load(offDst, 4)
	c.acceptTo(rules, SteerEverything)
	c.load(offFragment, 2)
	c.require(bpf.JumpBitsNotSet, 0x3fff)
	c.load(offLength, 2)
	c.require(bpf.JumpNotEqual, 0) // or a super-segment of more than 64 KB
	c.load(offProtocol, 1)
	c.onlyIf(bpf.JumpEqual, 6, func(c *steerCode) {
		c.load(offDst, 4)
		c.acceptTo(rules, SteerTCP)
		c.acceptWithin(behind, offDst, 4)
		c.reject()
	})
	c.require(bpf.JumpEqual, 1)
	c.tunnelErrors(rules)
	c.reject()
	return c
}

// acceptTo accepts if A is an address with such a rule.
func (c *steerCode) acceptTo(rules []SteerRule, what Steered) {
	for _, r := range rules {
		if a := r.Address.Unmap(); a.Is4() && r.What&what != 0 {
			c.onlyIf(bpf.JumpEqual, binary.BigEndian.Uint32(a.AsSlice()), (*steerCode).accept)
		}
	}
}

// acceptWithin accepts if the address of so many bytes at off lies in one of the prefixes.
func (c *steerCode) acceptWithin(prefixes []netip.Prefix, off uint32, size int) {
	for _, p := range prefixes {
		if a := p.Addr().AsSlice(); len(a) == size {
			c.acceptBits(off, a, p.Bits())
		}
	}
}

// acceptBits accepts if so many bits at off are those of b.
func (c *steerCode) acceptBits(off uint32, b []byte, bits int) {
	if bits <= 0 {
		c.accept()
		return
	}
	mask := ^uint32(0) << max(0, 32-bits)
	c.load(off, 4)
	*c = append(*c, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask})
	c.onlyIf(bpf.JumpEqual, binary.BigEndian.Uint32(b)&mask, func(c *steerCode) { c.acceptBits(off+4, b[4:], bits-32) })
}

// tunnelErrors accepts ICMP errors about IP-in-IP packets whose source is the
// error's destination.
func (c *steerCode) tunnelErrors(rules []SteerRule) {
	const icmpHeader = 8
	*c = append(*c, bpf.LoadMemShift{Off: offIP})
	c.loadBehind(icmpHeader+16, 4) // the whole header is there
	c.loadBehind(icmpHeader+9, 1)
	c.require(bpf.JumpEqual, 4)
	c.loadBehind(icmpHeader, 1)
	*c = append(*c, bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4})
	c.require(bpf.JumpEqual, 4)
	c.loadBehind(0, 1)
	c.requireOneOf(3, 11, 12) // unreachable, time exceeded, parameter problem
	c.loadBehind(icmpHeader+12, 4)
	*c = append(*c, bpf.TAX{})
	c.load(offDst, 4)
	*c = append(*c, bpf.JumpIfX{Cond: bpf.JumpEqual, SkipTrue: 1})
	c.reject()
	c.acceptTo(rules, SteerTunnelErrors)
}

// packet6 looks at an IPv6 packet. A length of 0 is that of none, or of a super-segment of
// more than 64 KB.
func (c *steerCode) packet6(rules []SteerRule, behind []netip.Prefix) {
	const header, icmpHeader = 40, 8
	c.load(offDst6+12, 4) // the whole header is there
	c.load(offIP, 1)
	c.require(bpf.JumpGreaterOrEqual, 0x60)
	c.require(bpf.JumpLessOrEqual, 0x6f)
	c.load(offPayload6, 2)
	c.require(bpf.JumpNotEqual, 0)
	c.load(offNext6, 1)
	c.require(bpf.JumpNotEqual, 41) // IPv6 in IPv6
	c.require(bpf.JumpNotEqual, 4)  // IPv4 in IPv6
	c.onlyIf(bpf.JumpEqual, 58, func(c *steerCode) {
		c.load(offIP+header, 1)
		c.onlyIf(bpf.JumpGreaterOrEqual, 133, func(c *steerCode) { // neighbours' and routers', to 137
			c.require(bpf.JumpGreaterThan, 137)
		})
	})
	c.acceptTo6(rules, SteerEverything)
	c.load(offNext6, 1)
	c.onlyIf(bpf.JumpEqual, 6, func(c *steerCode) {
		c.acceptTo6(rules, SteerTCP)
		c.acceptWithin(behind, offDst6, 16)
		c.reject()
	})
	c.require(bpf.JumpEqual, 58) // ICMPv6
	const about = offIP + header + icmpHeader
	c.load(about+36, 4) // the whole header is there
	c.load(about+6, 1)
	c.requireOneOf(4, 41) // IPv4 or IPv6 inside
	c.load(about, 1)
	c.require(bpf.JumpGreaterOrEqual, 0x60)
	c.require(bpf.JumpLessOrEqual, 0x6f)
	c.load(offIP+header, 1)
	c.requireOneOf(1, 2, 3, 4) // unreachable, too big, time exceeded, parameter problem
	for word := uint32(0); word < 16; word += 4 {
		c.load(about+8+word, 4)
		*c = append(*c, bpf.TAX{})
		c.load(offDst6+word, 4)
		*c = append(*c, bpf.JumpIfX{Cond: bpf.JumpEqual, SkipTrue: 1})
		c.reject()
	}
	c.acceptTo6(rules, SteerTunnelErrors)
	c.reject()
}

// acceptTo6 accepts if the IPv6 packet is to an address with such a rule.
func (c *steerCode) acceptTo6(rules []SteerRule, what Steered) {
	for _, r := range rules {
		if a := r.Address.Unmap(); a.Is6() && r.What&what != 0 {
			b := a.As16()
			c.acceptTo6Words(b[:])
		}
	}
}

// acceptTo6Words accepts if the last words of the destination are these.
func (c *steerCode) acceptTo6Words(rest []byte) {
	if len(rest) == 0 {
		c.accept()
		return
	}
	c.load(offDst6+16-uint32(len(rest)), 4)
	c.onlyIf(bpf.JumpEqual, binary.BigEndian.Uint32(rest), func(c *steerCode) { c.acceptTo6Words(rest[4:]) })
}
