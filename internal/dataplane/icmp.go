package dataplane

import (
	"encoding/binary"

	"weft/encap"
	"weft/flowcell"
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
	if err != nil || about[9] == flowcell.ProtoTCP && !tooBig(packet) {
		in.stats.PathErrors++
		return false
	}
	in.stats.Relayed++
	a.Bytes = a.Bytes[:len(packet)] // with its capacity, by which sinks find the buffer
	a.vnet = link.VnetHeader{}
	pkt.Length = len(packet)
	return in.concerns(pkt, a.Bytes)
}

// concerns reports whether ICMP is to be delivered. An error about TCP must quote a
// segment that is in flight. Otherwise anybody who guesses a connection's ports could
// slow it down or end it (RFC 5927 §4.1). The kernel checks that itself (tcp_v4_err),
// netstack does not. "Too big" is for egress, see narrows.
func (in *Ingress[P]) concerns(pkt *flowcell.Packet, b []byte) bool {
	if pkt.Fragment || b[0]>>4 != 4 {
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

// quote is the TCP segment that an ICMP error is about.
type quote struct {
	flow   flowcell.FiveTuple
	seq    uint32
	length int // of the IP packet
}

// quoteOf reads what an ICMP error about an IPv4 packet quotes. It is false if the
// packet is no error, or not about TCP. An error that quotes too little is about no
// flow.
func quoteOf(b []byte) (q quote, is bool) {
	icmp := b[int(b[0]&0xf)*4:]
	if len(icmp) < 8+20 || b[9] != flowcell.ProtoICMP {
		return q, false
	}
	switch icmp[0] {
	case 3, 4, 5, 11, 12: // unreachable, source quench, redirect, time exceeded, parameter problem (RFC 792)
	default:
		return q, false
	}
	inner := icmp[8:]
	if inner[0]>>4 != 4 || inner[9] != flowcell.ProtoTCP {
		return q, false
	}
	q.length = int(binary.BigEndian.Uint16(inner[2:]))
	at := int(inner[0]&0xf) * 4
	if at < 20 || len(inner) < at+8 || binary.BigEndian.Uint16(inner[6:])&0x1fff != 0 {
		return q, true
	}
	tcp := inner[at:]
	q.flow = flowcell.FiveTuple{
		Src: flowcell.AddressFrom4([4]byte(inner[12:16])), Dst: flowcell.AddressFrom4([4]byte(inner[16:20])),
		SrcPort: binary.BigEndian.Uint16(tcp), DstPort: binary.BigEndian.Uint16(tcp[2:]), Proto: flowcell.ProtoTCP,
	}
	q.seq = binary.BigEndian.Uint32(tcp[4:])
	return q, true
}

// minPathMTU is the smallest MTU of a path that is believed, in bytes: Linux's
// default (net.ipv4.route.min_pmtu). Netstack would believe a smaller one, whoever
// says it, and send one byte a packet.
const minPathMTU = 552

// absurd reports whether a packet is an ICMP error that tells of a smaller MTU
// than any path has.
func absurd(b []byte) bool {
	icmp := b[int(b[0]&0xf)*4:]
	return len(icmp) >= 8 && tooBig(b) && reportedMTU(b) < minPathMTU
}

// tooBig reports whether a packet is an ICMP unreachable about a packet's size.
func tooBig(b []byte) bool {
	const unreachable, fragmentationNeeded = 3, 4
	icmp := b[int(b[0]&0xf)*4:]
	return len(icmp) >= 8 && icmp[0] == unreachable && icmp[1] == fragmentationNeeded
}

// reportedMTU is what an ICMP "too big" says (RFC 1191 §4).
func reportedMTU(b []byte) int {
	return int(binary.BigEndian.Uint16(b[int(b[0]&0xf)*4+6:]))
}
