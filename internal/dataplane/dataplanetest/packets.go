package dataplanetest

import (
	"encoding/binary"
	"net/netip"

	"weft/encap"
	"weft/internal/checksum"
	"weft/topology"
)

// Fixed updates the IPv4 checksum of a packet, and returns the packet.
func Fixed(b []byte) []byte {
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint16(b[10:], ^checksum.Fold(checksum.Sum(b[:int(b[0]&0xf)*4], 0)))
	return b
}

// With changes a packet, updates its IPv4 checksum, and returns the packet.
func With(b []byte, change func([]byte)) []byte {
	change(b)
	return Fixed(b)
}

// WithTCPChecksum updates the TCP checksum of an IPv4 packet without options, and returns
// the packet.
func WithTCPChecksum(b []byte) []byte {
	b[36], b[37] = 0, 0
	sum := checksum.Sum(b[12:20], 6+uint64(len(b)-20))
	binary.BigEndian.PutUint16(b[36:], ^checksum.Fold(checksum.Sum(b[20:], sum)))
	return b
}

// PartialTCPChecksum replaces the TCP checksum of an IPv4 packet without options by the
// partial sum that a device completes, and returns the packet.
func PartialTCPChecksum(b []byte) []byte {
	sum := checksum.Sum(b[12:20], 6+uint64(len(b)-20))
	binary.BigEndian.PutUint16(b[36:], checksum.Fold(sum))
	return b
}

// ipv4 is the header of an empty packet from A to B.
func ipv4(protocol byte, length int) []byte {
	b := make([]byte, length)
	b[0], b[8], b[9] = 0x45, 64, protocol
	binary.BigEndian.PutUint16(b[2:], uint16(length))
	copy(b[12:], AddrA.AsSlice())
	copy(b[16:], AddrB.AsSlice())
	return Fixed(b)
}

// TCPSegment returns a segment of 10 bytes from A to B.
func TCPSegment() []byte {
	b := ipv4(6, 20+20+10)
	copy(b[20:], []byte{0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0x50, 0x10, 0, 100})
	return WithTCPChecksum(b)
}

// EchoRequest returns a ping from A to B.
func EchoRequest() []byte {
	b := ipv4(1, 20+8+16)
	b[20] = 8
	binary.BigEndian.PutUint16(b[22:], ^checksum.Fold(checksum.Sum(b[20:], 0)))
	return b
}

// DataPacket returns a packet of a flow from A to B with a payload of zeros. port
// identifies the flow. The TCP checksum is wrong.
func DataPacket(port uint16, payload int) []byte {
	b := append(TCPSegment()[:40], make([]byte, payload)...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[20:], port)
	return Fixed(b)
}

// DataPacket6 is DataPacket from and to the IPv6 addresses of A and B (topology.Addr6), with
// a flow label and the right TCP checksum.
func DataPacket6(port uint16, payload int) []byte {
	b := make([]byte, 60+payload)
	binary.BigEndian.PutUint32(b, 6<<28|0x7cafe)
	binary.BigEndian.PutUint16(b[4:], uint16(20+payload))
	b[6], b[7] = 6, 64
	copy(b[8:], topology.Addr6(AddrA).AsSlice())
	copy(b[24:], topology.Addr6(AddrB).AsSlice())
	copy(b[40:], TCPSegment()[20:40])
	binary.BigEndian.PutUint16(b[40:], port)
	return WithTCPChecksum6(b)
}

// WithTCPChecksum6 updates the TCP checksum of an IPv6 packet without extension headers, and
// returns the packet.
func WithTCPChecksum6(b []byte) []byte {
	b[56], b[57] = 0, 0
	sum := checksum.Sum(b[8:40], 6+uint64(len(b)-40))
	binary.BigEndian.PutUint16(b[56:], ^checksum.Fold(checksum.Sum(b[40:], sum)))
	return b
}

// SwitchError returns an ICMP error of the switch 10.0.2.1 about a packet to a bouncing
// switch. It quotes at most quoted bytes of the packet.
func SwitchError(kind, code byte, mtu uint16, bounce netip.Addr, inner []byte, quoted int) []byte {
	outer, err := encap.NewIPIP(netip.AddrFrom4([4]byte(inner[12:16])), bounce)
	if err != nil {
		panic(err)
	}
	quote := append(make([]byte, encap.Overhead), inner...)
	if err := outer.Encapsulate(quote, 1); err != nil {
		panic(err)
	}
	return icmpError(kind, code, mtu, inner[12:16], quote[:min(quoted, len(quote))])
}

// PlainError returns an ICMP "too big" for a host, about a packet without an outer
// header.
func PlainError(to netip.Addr) []byte {
	inner := DataPacket(1, 10)
	copy(inner[12:], to.AsSlice())
	return icmpError(3, 4, 1400, inner[12:16], Fixed(inner))
}

// TooBig6 returns the ICMPv6 "packet too big" of a switch about a packet (RFC 4443 §3.2).
func TooBig6(from netip.Addr, mtu uint32, packet []byte) []byte {
	b := append(make([]byte, 48), packet[:min(len(packet), 1280-48)]...)
	b[0], b[6], b[7], b[40] = 0x60, 58, 64, 2
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
	copy(b[8:], from.AsSlice())
	copy(b[24:], packet[8:24])
	binary.BigEndian.PutUint32(b[44:], mtu)
	binary.BigEndian.PutUint16(b[42:], ^checksum.Fold(checksum.Sum(b[8:], uint64(len(b)-40)+58)))
	return b
}

func icmpError(kind, code byte, mtu uint16, to, quote []byte) []byte {
	b := append(make([]byte, 28), quote...)
	b[0], b[8], b[9] = 0x45, 63, 1
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	copy(b[12:], []byte{10, 0, 2, 1})
	copy(b[16:20], to)
	b[20], b[21] = kind, code
	binary.BigEndian.PutUint16(b[26:], mtu)
	binary.BigEndian.PutUint16(b[22:], ^checksum.Fold(checksum.Sum(b[20:], 0)))
	return Fixed(b)
}
