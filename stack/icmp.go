package stack

import (
	"encoding/binary"

	"weft/encap"
	"weft/flowcell"
	"weft/link"
)

// relay turns a switch's error about an outer header of ours into the one that
// the inner packet's sender is to have, in place; other ICMP it leaves as it is.
// It reports whether the packet is one to deliver; if not, it has been counted.
//
// Of TCP only "too big" is relayed: that a bouncing switch cannot be reached says
// nothing of the destination, and a connection under way to being opened would
// fail, though its next SYN takes another path (RFC 2003 §4 knows of one path
// only). All else keeps to the path that the error is about.
func (in *ingress[P]) relay(pkt *flowcell.Packet, a *arrived) bool {
	packet, about, err := encap.InnerError(a.b)
	if err == encap.ErrNotTunnelError {
		if !pkt.Fragment && absurd(a.b) {
			in.stats.PathErrors++
			return false
		}
		return true
	}
	if err != nil || about[9] == flowcell.ProtoTCP && !tooBig(packet) {
		in.stats.PathErrors++
		return false
	}
	in.stats.Relayed++
	a.b = a.b[:len(packet)] // with its capacity, by which sinks find the buffer
	a.vnet = link.VnetHeader{}
	pkt.Length = len(packet)
	return true
}

// minPathMTU is the least that a path is believed to carry, in bytes: Linux's
// default (net.ipv4.route.min_pmtu). Netstack would believe less, whoever says it,
// and send a byte a packet.
const minPathMTU = 552

// absurd reports whether a packet is an ICMP error that tells of a smaller MTU
// than any path has.
func absurd(b []byte) bool {
	icmp := b[int(b[0]&0xf)*4:]
	return len(icmp) >= 8 && icmp[0] == 3 && tooBig(b) && binary.BigEndian.Uint16(icmp[6:]) < minPathMTU
}

// tooBig reports whether an ICMP unreachable is about a packet's size.
func tooBig(b []byte) bool {
	const fragmentationNeeded = 4
	return b[int(b[0]&0xf)*4+1] == fragmentationNeeded
}
