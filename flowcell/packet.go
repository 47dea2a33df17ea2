package flowcell

import (
	"encoding/binary"
	"errors"
)

// Errors of Parse. Each names what the packet gets wrong.
var (
	ErrTruncated    = errors.New("flowcell: packet shorter than its headers say")
	ErrVersion      = errors.New("flowcell: neither an IPv4 nor an IPv6 packet")
	ErrHeaderLength = errors.New("flowcell: IHL or TCP data offset below 20 bytes")
	ErrExtensions   = errors.New("flowcell: more IPv6 extension headers than anybody sends")
	ErrMapped       = errors.New("flowcell: IPv6 packet from or to an IPv4-mapped address, which has no place on the wire")
)

// TCP flag bits (RFC 9293 §3.1).
const (
	FlagFIN = 1 << iota
	FlagSYN
	FlagRST
	FlagPSH
	FlagACK
	FlagURG
	FlagECE
	FlagCWR
)

// Packet holds the fields of an IP packet that classification and resequencing need.
type Packet struct {
	Flow   FiveTuple
	Length int // bytes of the IP packet; the slice may be longer (padding)
	// Seq, Payload and Flags are set for unfragmented TCP only.
	Seq      uint32
	Payload  int32  // bytes of TCP payload
	ID       uint16 // the IPv4 ID, or the lower half of the IPv6 flow label: see Number
	Flags    uint8
	Fragment bool // part of a fragmented datagram: ports are unknown, Flow has none
	// Extensions says that IPv6 extension headers stand before the transport header. Such a
	// packet cannot be cut (weft/gso), nor merged.
	Extensions bool
	// MoreSegments is the number of segments after the first in a super-segment. ID is
	// that of the first segment, and the others count up from it. Parse cannot know the
	// number and sets 0.
	MoreSegments uint8
}

// IsTCP reports whether the TCP fields are set.
func (p *Packet) IsTCP() bool { return p.Flow.Proto == ProtoTCP && !p.Fragment }

// IsPureACK reports a TCP segment that carries nothing but an acknowledgement.
// DRB keeps a selector of its own for these (DRB §5).
func (p *Packet) IsPureACK() bool {
	return p.IsTCP() && p.Payload == 0 && p.Flags&(FlagSYN|FlagFIN|FlagRST) == 0
}

// Part returns p for a part of its TCP payload, as if the part were a packet of its own.
// The part begins at offset from and has at most most bytes. A packet without payload or
// without TCP is returned unchanged.
func (p *Packet) Part(from, most int) Packet {
	q := *p
	if p.IsTCP() && p.Payload > 0 {
		q.Seq += uint32(from)
		q.Payload = min(p.Payload-int32(from), int32(most))
		q.Length = p.Length - int(p.Payload-q.Payload)
	}
	return q
}

// Parse reads an IPv4 or IPv6 packet. It allocates nothing, keeps nothing of b
// and never panics. After an error p is of no use.
func (p *Packet) Parse(b []byte) error { return p.ParseHeaders(b, len(b)) }

// ParseHeaders is Parse for a packet of size bytes of which b holds only the beginning. b
// must hold all headers; otherwise the error is ErrTruncated.
func (p *Packet) ParseHeaders(b []byte, size int) error {
	p.MoreSegments = 0
	if size = max(size, len(b)); len(b) < 20 {
		if len(b) > 0 && b[0]>>4 != 4 && b[0]>>4 != 6 {
			return ErrVersion
		}
		return ErrTruncated
	}
	if b[0]>>4 != 4 {
		return p.parse6(b, size)
	}
	ihl := int(b[0]&0xf) * 4
	if ihl < 20 {
		return ErrHeaderLength
	}
	p.Length = int(binary.BigEndian.Uint16(b[2:]))
	if p.Length < ihl || p.Length > size || ihl > len(b) {
		return ErrTruncated
	}
	p.ID = binary.BigEndian.Uint16(b[4:])
	p.Flow.Src = Address{0, mapped | uint64(binary.BigEndian.Uint32(b[12:]))}
	p.Flow.Dst = Address{0, mapped | uint64(binary.BigEndian.Uint32(b[16:]))}
	p.Flow.Proto = b[9]
	// More-fragments or an offset: only the first fragment has ports, and all
	// fragments of a flow must take one path.
	p.Fragment, p.Extensions = binary.BigEndian.Uint16(b[6:])&0x3fff != 0, false
	return p.transport(b[ihl:min(p.Length, len(b))], p.Length-ihl)
}

// transport reads what stands behind the IP headers: size bytes, of which b has
// the first.
func (p *Packet) transport(b []byte, size int) error {
	p.Flow.SrcPort, p.Flow.DstPort, p.Seq, p.Payload, p.Flags = 0, 0, 0, 0, 0
	if p.Fragment {
		return nil
	}
	switch p.Flow.Proto {
	case ProtoTCP:
		if len(b) < 20 {
			return ErrTruncated
		}
		offset := int(b[12]>>4) * 4
		if offset < 20 {
			return ErrHeaderLength
		}
		if offset > len(b) {
			return ErrTruncated
		}
		p.Flow.SrcPort = binary.BigEndian.Uint16(b[0:])
		p.Flow.DstPort = binary.BigEndian.Uint16(b[2:])
		p.Seq = binary.BigEndian.Uint32(b[4:])
		p.Flags = b[13]
		p.Payload = int32(size - offset)
	case ProtoUDP:
		if len(b) < 8 {
			return ErrTruncated
		}
		p.Flow.SrcPort = binary.BigEndian.Uint16(b[0:])
		p.Flow.DstPort = binary.BigEndian.Uint16(b[2:])
	}
	return nil
}
