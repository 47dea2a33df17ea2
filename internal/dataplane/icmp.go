package dataplane

import (
	"encoding/binary"
	"net/netip"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/checksum"
	"weft/link"
)

// relay turns a switch's error about one of our outer headers, in place, into the error
// that the inner packet's sender must get. It leaves other ICMP unchanged. It reports
// whether the packet is to be delivered; if not, it has been counted.
//
// Of the errors about TCP only "too big" is relayed. That a bouncing switch cannot be
// reached says nothing about the destination. Such an error would end a connection that
// is being opened, although its next SYN takes another path (RFC 2003 §4 assumes a single
// path). Protocols other than TCP keep to the path that the error is about.
//
// The quote stays unchanged, with TCP's sequence number, by which a kernel tells errors
// from forgeries.
func (in *Ingress[P]) relay(pkt *flowcell.Packet, a *Arrived) bool {
	packet, about, err := encap.InnerError(a.Bytes)
	if err == encap.ErrNotTunnelError {
		return in.concerns(pkt, a.Bytes)
	}
	if err != nil || protocolOf(about) == flowcell.ProtoTCP && !tooBig(packet) {
		in.stats.PathErrors++
		return false
	}
	a.Bytes = a.Bytes[:len(packet)] // with its capacity, by which sinks find the buffer
	a.vnet = link.VnetHeader{}
	// The error is of the inner packet's family, and need not be to the address to which
	// the switch has sent its own.
	if pkt.Parse(a.Bytes) != nil || !in.accepts(pkt, a.Bytes) {
		in.stats.PathErrors++
		return false
	}
	in.stats.Relayed++
	return in.concerns(pkt, a.Bytes)
}

// protocolOf is what follows the IP header of a packet, of which there is one.
func protocolOf(b []byte) uint8 {
	if b[0]>>4 == 6 {
		return b[6]
	}
	return b[9]
}

// concerns reports whether ICMP is to be delivered. An error about TCP must quote a
// segment that is in flight. Otherwise anybody who guesses a connection's ports could
// slow it down or end it (RFC 5927 §4.1). The kernel checks that itself (tcp_v4_err,
// tcp_v6_err), netstack does not. "Too big" is for egress, see narrows.
func (in *Ingress[P]) concerns(pkt *flowcell.Packet, b []byte) bool {
	if pkt.Fragment || !isICMP(b) {
		return true
	}
	if absurd(b) {
		in.stats.PathErrors++
		return false
	}
	if in.narrow == nil {
		return true
	}
	q, is := quoteOf(b)
	switch {
	case !is:
		return true
	case !validICMP(b): // nobody behind us would see what "too big" says
		in.stats.BadChecksum++
		return false
	case !in.flights.has(&q.flow, q.seq):
		in.stats.BlindErrors++
		return false
	case !tooBig(b):
		return true
	}
	if mtu := reportedMTU(b); mtu < q.length { // else it was not too big
		in.narrow(q.flow.Dst, mtu)
	}
	return false
}

// ICMP's types and codes (RFC 792), and ICMPv6's (RFC 4443).
const (
	icmpUnreachable  = 3
	icmpTooBig       = 4 // a code
	icmp6TooBig      = 2
	icmp6Query       = 128 // types from here on are no errors
	icmp6Redirect    = 137
	icmpHeaderLen    = 8
	icmp6HeadersLen  = 40 + icmpHeaderLen
	longestICMP6     = 1280 // bytes of an error (RFC 4443 §2.4)
	leastQuotedPorts = 8    // bytes of TCP that an error must quote
)

// isICMP reports whether a packet that Parse has accepted, and that is no fragment, is ICMP
// with a whole header, or ICMPv6 without extension headers before it.
func isICMP(b []byte) bool {
	if b[0]>>4 == 6 {
		return b[6] == flowcell.ProtoICMPv6 && len(b) >= icmp6HeadersLen
	}
	return b[9] == flowcell.ProtoICMP && len(b) >= int(b[0]&0xf)*4+icmpHeaderLen
}

// isICMP6Error reports whether an IPv6 packet is one about which there must be no ICMPv6
// error (RFC 4443 §2.4).
func isICMP6Error(b []byte) bool {
	return isICMP(b) && (b[40] < icmp6Query || b[40] == icmp6Redirect)
}

// validICMP reports whether the checksum of a packet that isICMP has accepted is right.
func validICMP(b []byte) bool {
	if b[0]>>4 == 6 {
		pseudo := checksum.Sum(b[8:40], flowcell.ProtoICMPv6+uint64(len(b)-40))
		return checksum.Fold(checksum.Sum(b[40:], pseudo)) == 0xffff
	}
	return checksum.Fold(checksum.Sum(b[int(b[0]&0xf)*4:], 0)) == 0xffff
}

// quote is the TCP segment that an ICMP error is about.
type quote struct {
	flow   flowcell.FiveTuple
	seq    uint32
	length int // of the IP packet
}

// quoteOf reads what an ICMP error quotes, which isICMP has accepted. It is false if the
// packet is no error, or not about TCP. An error that quotes too little is about no
// flow.
func quoteOf(b []byte) (q quote, is bool) {
	if b[0]>>4 == 6 {
		return quoteOf6(b)
	}
	icmp := b[int(b[0]&0xf)*4:]
	switch icmp[0] {
	case 3, 4, 5, 11, 12: // unreachable, source quench, redirect, time exceeded, parameter problem (RFC 792)
	default:
		return q, false
	}
	inner := icmp[icmpHeaderLen:]
	if len(inner) < 20 || inner[0]>>4 != 4 || inner[9] != flowcell.ProtoTCP {
		return q, false
	}
	q.length = int(binary.BigEndian.Uint16(inner[2:]))
	at := int(inner[0]&0xf) * 4
	if at < 20 || len(inner) < at+leastQuotedPorts || binary.BigEndian.Uint16(inner[6:])&0x1fff != 0 {
		return q, true
	}
	q.flow.Src, q.flow.Dst = flowcell.AddressFrom4([4]byte(inner[12:16])), flowcell.AddressFrom4([4]byte(inner[16:20]))
	q.ports(inner[at:])
	return q, true
}

// quoteOf6 is quoteOf for ICMPv6. Egress cuts no packets with extension headers; an error
// about one is the sender's.
func quoteOf6(b []byte) (q quote, is bool) {
	inner := b[icmp6HeadersLen:]
	if b[40] >= icmp6Query {
		return q, false
	}
	if len(inner) < 40 || inner[0]>>4 != 6 || inner[6] != flowcell.ProtoTCP {
		return q, false
	}
	q.length = 40 + int(binary.BigEndian.Uint16(inner[4:]))
	if len(inner) < 40+leastQuotedPorts {
		return q, true
	}
	q.flow.Src, q.flow.Dst = flowcell.AddressFrom16([16]byte(inner[8:24])), flowcell.AddressFrom16([16]byte(inner[24:40]))
	q.ports(inner[40:])
	return q, true
}

// ports reads the beginning of a TCP header.
func (q *quote) ports(tcp []byte) {
	q.flow.SrcPort, q.flow.DstPort = binary.BigEndian.Uint16(tcp), binary.BigEndian.Uint16(tcp[2:])
	q.flow.Proto = flowcell.ProtoTCP
	q.seq = binary.BigEndian.Uint32(tcp[4:])
}

// minPathMTU is the smallest MTU of a path that is believed, in bytes: Linux's
// default (net.ipv4.route.min_pmtu). Netstack would believe a smaller one, whoever
// says it, and send one byte a packet. For IPv6 it is leastMTU6 (RFC 8201 §4).
const minPathMTU = 552

// absurd reports whether a packet is an ICMP error that tells of a smaller MTU
// than any path has.
func absurd(b []byte) bool {
	least := minPathMTU
	if b[0]>>4 == 6 {
		least = leastMTU6
	}
	return tooBig(b) && reportedMTU(b) < least
}

// tooBig reports whether a packet that isICMP has accepted is an error about a packet's
// size.
func tooBig(b []byte) bool {
	if b[0]>>4 == 6 {
		return b[40] == icmp6TooBig
	}
	icmp := b[int(b[0]&0xf)*4:]
	return icmp[0] == icmpUnreachable && icmp[1] == icmpTooBig
}

// reportedMTU is what an ICMP "too big" says (RFC 1191 §4, RFC 4443 §3.2).
func reportedMTU(b []byte) int {
	if b[0]>>4 == 6 {
		return int(min(binary.BigEndian.Uint32(b[44:]), 1<<16))
	}
	return int(binary.BigEndian.Uint16(b[int(b[0]&0xf)*4+6:]))
}

// packetTooBig is the ICMPv6 error of a router about an IPv6 packet (RFC 4443 §3.2), of
// which packet is the beginning.
func packetTooBig(router netip.Addr, packet []byte, mtu int) []byte {
	quote := packet[:min(len(packet), longestICMP6-icmp6HeadersLen)]
	b := make([]byte, icmp6HeadersLen, icmp6HeadersLen+len(quote))
	b[0], b[6], b[7] = 0x60, flowcell.ProtoICMPv6, 64
	copy(b[8:], packet[24:40]) // the destination, where nobody on the way has an IPv6 address
	if router.Is6() {
		copy(b[8:], router.AsSlice())
	}
	copy(b[24:], packet[8:24])
	b[40] = icmp6TooBig
	binary.BigEndian.PutUint32(b[44:], uint32(max(mtu, leastMTU6)))
	b = append(b, quote...)
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
	pseudo := checksum.Sum(b[8:40], flowcell.ProtoICMPv6+uint64(len(b)-40))
	binary.BigEndian.PutUint16(b[42:], ^checksum.Fold(checksum.Sum(b[40:], pseudo)))
	return b
}
