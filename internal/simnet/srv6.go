package simnet

import (
	"encoding/binary"
	"net/netip"
	"time"

	"weft/encap"
	"weft/topology"
)

const ipv6Header = 40

// isIPv6 reports whether a packet that is not empty says that it is IPv6. Of
// IPv6 the fabric knows nothing but packets with labels.
func isIPv6(b []byte) bool { return b[0]>>4 == 6 }

// checkIPv6 is checkHeader for IPv6, which has no checksum. The fabric takes
// nothing but an IPv4 packet behind the header.
func checkIPv6(b []byte) (length int, ok bool) {
	if len(b) < ipv6Header || b[6] != 4 {
		return 0, false
	}
	length = ipv6Header + int(binary.BigEndian.Uint16(b[4:]))
	return length, length <= len(b)
}

// check is the check of b's version.
func check(b []byte) (length int, ok bool) {
	if len(b) > 0 && isIPv6(b) {
		return checkIPv6(b)
	}
	return checkHeader(b)
}

// pop does what a switch does with a packet with labels that has come in by
// from: it sends it out of the port that the active label names, or takes the
// outer header off at the end of the stack and routes on what is inside. What comes
// from a host has to have that host's address.
func (n *Network) pop(node, from *node, p *packet, at time.Duration) {
	dst := (*[16]byte)(p.data[24:])
	if !encap.SIDBlock.Contains(netip.AddrFrom16(*dst)) {
		n.drop(p, NoRoute)
		return
	}
	if from.layer == topology.LayerHost && !from.owns6([16]byte(p.data[8:])) {
		n.drop(p, Spoofed)
		return
	}
	sid, more := encap.PopSID(dst)
	switch {
	case sid == encap.SIDDecap && !more:
		n.decapsulate(node, p, at)
	case sid > encap.MaxSIDPort+1, int(sid) > len(node.out):
		n.drop(p, NoLabel)
	case sid == 0, !more:
		n.drop(p, LabelsEnd)
	case p.data[7] <= 1:
		n.drop(p, TTLExpired)
	default:
		p.data[7]--
		n.emit(node.out[sid-1], p, at)
	}
}

// emit sends a packet with labels out of a port, unless that is dead, or leads
// to a host: no labels go on behind one.
func (n *Network) emit(index int32, p *packet, at time.Duration) {
	if index < 0 || n.nodes[n.ports[index].peer].layer == topology.LayerHost {
		n.drop(p, NoLabel)
		return
	}
	n.send(index, p, at)
}

// decapsulate routes on what is inside p.
func (n *Network) decapsulate(node *node, p *packet, at time.Duration) {
	inner, err := encap.DecapsulateSRv6(p.data)
	switch {
	case node.deaf:
		n.drop(p, NotForUs)
	case err != nil || inner[0]>>4 != 4: // the model routes IPv4, as End.DX4 does
		n.drop(p, Malformed)
	case number6(source(inner)) != [16]byte(p.data[8:]):
		n.drop(p, Spoofed)
	case node.owns(destination(inner)):
		n.drop(p, NotForUs)
	case !decrementTTL(inner):
		n.drop(p, TTLExpired)
	default:
		p.data = inner
		n.forward(node, 0, p, at)
	}
}

// owns6 reports whether an IPv6 address is that of one of the node's own.
func (s *node) owns6(addr [16]byte) bool {
	return addr == number6(s.own) || addr == number6(s.embedded)
}

// number6 is topology.Addr6 of an address as a number.
func number6(addr uint32) [16]byte {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], addr)
	return topology.Addr6(netip.AddrFrom4(a)).As16()
}
