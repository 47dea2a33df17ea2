package dataplane

import (
	"weft/encap"
	"weft/flowcell"
	"weft/internal/checksum"
)

// check reads a packet and reports whether it is to be delivered. If not, it has been
// counted. check must find a wrong checksum, TCP would be too late: a sequence number
// that is noise would spoil the order of what follows.
func (in *Ingress[P]) check(pkt *flowcell.Packet, a *Arrived) bool {
	if err := pkt.Parse(a.Bytes); err != nil {
		in.stats.Malformed++
		return false
	}
	a.Bytes = a.Bytes[:pkt.Length]
	switch {
	case !in.accepts(pkt, a.Bytes):
		in.stats.NotForUs++
		return false
	case in.probe != nil && encap.IsProbe(a.Bytes):
		in.takeProbe(a.Bytes)
		return false
	case in.sample != nil && encap.IsSample(a.Bytes):
		in.stats.Samples++
		in.sample(a.Bytes)
		return false
	case martian(a.Bytes):
		in.stats.Martian++
		return false
	case pkt.Flow.Proto == flowcell.ProtoIPIP:
		in.stats.Encapsulated++
		return false
	case !validIP(a.Bytes) || pkt.IsTCP() && !a.verified && !validTCP(a.Bytes):
		in.stats.BadChecksum++
		return false
	case in.probe != nil && (pkt.Flow.Proto == flowcell.ProtoICMP || pkt.Flow.Proto == flowcell.ProtoICMPv6) && aboutProbe(a.Bytes):
		in.takeProbe(a.Bytes)
		return false
	case pkt.Flow.Proto != flowcell.ProtoICMP && pkt.Flow.Proto != flowcell.ProtoICMPv6:
	case in.relays:
		return in.relay(pkt, a)
	case in.narrow != nil:
		return in.concerns(pkt, a.Bytes)
	}
	proven := false
	if in.flights != nil && pkt.IsTCP() {
		if ack, ok := ackOf(pkt, a.Bytes); ok {
			proven = in.flights.acknowledged(&pkt.Flow, ack)
			if proven && in.flights.heeded.Load() {
				in.acked = append(in.acked, newArrivedAck(pkt, a.Bytes, ack))
			}
		}
	}
	if in.relays {
		in.unmark(pkt, a.Bytes, proven)
	}
	return true
}

// aboutProbe reports whether an ICMP error says that a probe was too long for a link.
func aboutProbe(b []byte) bool {
	_, _, err := encap.ProbeTooBig(b)
	return err == nil
}

// martian reports whether a packet's source is one that no packet from a network has
// (RFC 1812 §5.3.7): this-network, loopback, multicast, reserved or broadcast.
func martian(b []byte) bool {
	if b[0]>>4 == 6 {
		return b[8] == 0xff || [16]byte(b[8:24]) == [16]byte{} || [16]byte(b[8:24]) == [16]byte{15: 1}
	}
	first := b[12]
	return first == 0 || first == 127 || first >= 224
}

// validIP reports whether the checksum of an IPv4 header is right. IPv6 has none.
func validIP(b []byte) bool {
	return b[0]>>4 == 6 || checksum.Fold(checksum.Sum(b[:int(b[0]&0xf)*4], 0)) == 0xffff
}

// validTCP reports whether the TCP checksum is right, of an unfragmented packet that
// Parse has accepted.
func validTCP(b []byte) bool {
	addresses := b[12:20]
	if b[0]>>4 == 6 {
		addresses = b[8:40]
	}
	segment := b[transportAt(b):]
	pseudo := checksum.Sum(addresses, flowcell.ProtoTCP+uint64(len(segment)))
	return checksum.Fold(checksum.Sum(segment, pseudo)) == 0xffff
}

// transportAt returns where the transport header begins in an unfragmented packet
// that Parse has accepted.
func transportAt(b []byte) int {
	if b[0]>>4 == 4 {
		return int(b[0]&0xf) * 4
	}
	next, at := b[6], 40
	for {
		switch next {
		case 0, 43, 60: // hop-by-hop, routing, destination options
			next, at = b[at], at+8+8*int(b[at+1])
		case 44: // an atomic fragment
			next, at = b[at], at+8
		default:
			return at
		}
	}
}
