package hops

import (
	"encoding/binary"
	"net/netip"

	"weft/encap"
	"weft/flowcell"
)

// answer is what came back.
type answer struct {
	from    netip.Addr
	to      netip.Addr
	reached bool // the target has answered
	byWeft  bool // and runs weft: nothing is quoted
	quoted  ends // of the first header that is quoted
	// What tells which packet it is about. token is 0 if the quote is too short.
	token uint64
	outer uint16 // the ID of the outer header; 0 if there is none
	sum   uint16 // UDP's checksum
}

const (
	icmpUnreachable  = 3
	icmpTimeExceeded = 11

	icmp6Unreachable  = 1
	icmp6TimeExceeded = 3

	icmpHeader = 8
	udpHeader  = 8
	ip6Header  = 40
)

// parseAnswer reads a packet that has come in, any bytes. ok is false if it answers nothing.
func parseAnswer(b []byte) (a answer, ok bool) {
	var p flowcell.Packet
	if p.Parse(b) != nil || p.Fragment || p.Extensions {
		return a, false
	}
	a.from, a.to = p.Flow.Src.IP(), p.Flow.Dst.IP()
	at := ip6Header
	if b[0]>>4 == 4 {
		at = int(b[0]&0xf) * 4
	}
	switch body := b[at:p.Length]; p.Flow.Proto {
	case flowcell.ProtoUDP:
		probe, err := encap.ParseProbe(b)
		if err != nil || probe.Kind != encap.ProbeReply {
			return a, false
		}
		a.token, a.reached, a.byWeft = probe.Token, true, true
		return a, true
	case flowcell.ProtoICMP:
		if len(body) < icmpHeader || body[0] != icmpTimeExceeded && body[0] != icmpUnreachable {
			return a, false
		}
		a.reached = body[0] == icmpUnreachable && body[1] == 3 // port
		return a, body[1] == 0 && body[0] == icmpTimeExceeded && a.quote(body[icmpHeader:]) || a.reached && a.quote(body[icmpHeader:])
	case flowcell.ProtoICMPv6:
		if len(body) < icmpHeader || body[0] != icmp6TimeExceeded && body[0] != icmp6Unreachable {
			return a, false
		}
		a.reached = body[0] == icmp6Unreachable && body[1] == 4
		return a, body[1] == 0 && body[0] == icmp6TimeExceeded && a.quote(body[icmpHeader:]) || a.reached && a.quote(body[icmpHeader:])
	}
	return a, false
}

// quote finds out about which packet an error is. As little as eight bytes behind the first
// header may be there (RFC 792), or behind a header of IPv6.
func (a *answer) quote(b []byte) bool {
	for i := range 2 {
		proto, at := byte(0), 0
		switch {
		case len(b) >= 20 && b[0]>>4 == 4:
			proto, at = b[9], int(b[0]&0xf)*4
			if proto == flowcell.ProtoIPIP || proto == flowcell.ProtoIPv6 {
				a.outer = binary.BigEndian.Uint16(b[4:])
			}
		case len(b) >= ip6Header && b[0]>>4 == 6:
			proto, at = b[6], ip6Header
		default:
			return a.outer != 0
		}
		if at < 20 || at > len(b) {
			return a.outer != 0
		}
		if i == 0 {
			a.quoted = ends{source(b), destination(b)}
		}
		b = b[at:]
		switch proto {
		case flowcell.ProtoIPIP, flowcell.ProtoIPv6:
			continue
		case flowcell.ProtoUDP:
			if len(b) < udpHeader || binary.BigEndian.Uint16(b) != encap.ProbePort || binary.BigEndian.Uint16(b[2:]) != encap.ProbePort {
				return false
			}
			a.sum = binary.BigEndian.Uint16(b[6:])
			const token = udpHeader + 8
			if len(b) >= token+8 {
				a.token = binary.BigEndian.Uint64(b[token:])
			}
			return true
		}
		return false
	}
	return a.outer != 0
}
