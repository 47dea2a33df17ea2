package flowcell

import (
	"encoding/binary"
	"errors"
)

// Errors of Parse. Each names what the packet gets wrong.
var (
	ErrTruncated    = errors.New("flowcell: packet shorter than its headers say")
	ErrVersion      = errors.New("flowcell: not an IPv4 packet")
	ErrHeaderLength = errors.New("flowcell: IHL or TCP data offset below 20 bytes")
)

// TCP flag bits (RFC 9293 §3.1).
const (
	FlagFIN = 1 << iota
	FlagSYN
	FlagRST
	FlagPSH
	FlagACK
	FlagURG
)

// Packet is what classification and resequencing need to know of an IP packet.
type Packet struct {
	Flow     FiveTuple
	Length   int  // bytes of the IP packet; the slice may be longer (padding)
	Fragment bool // part of a fragmented datagram: ports are unknown, Flow has none
	// The rest is set for unfragmented TCP only.
	Seq     uint32
	Payload int // bytes of TCP payload
	Flags   uint8
}

// IsTCP reports whether the TCP fields are set.
func (p *Packet) IsTCP() bool { return p.Flow.Proto == ProtoTCP && !p.Fragment }

// IsPureACK reports a TCP segment that carries nothing but an acknowledgement.
// DRB keeps a selector of its own for these (DRB §5).
func (p *Packet) IsPureACK() bool {
	return p.IsTCP() && p.Payload == 0 && p.Flags&(FlagSYN|FlagFIN|FlagRST) == 0
}

// Parse reads an IPv4 packet. It allocates nothing and never panics.
func Parse(b []byte) (Packet, error) {
	var p Packet
	if len(b) < 1 || b[0]>>4 != 4 {
		if len(b) < 1 {
			return p, ErrTruncated
		}
		return p, ErrVersion
	}
	if len(b) < 20 {
		return p, ErrTruncated
	}
	ihl := int(b[0]&0xf) * 4
	if ihl < 20 {
		return p, ErrHeaderLength
	}
	p.Length = int(binary.BigEndian.Uint16(b[2:]))
	if p.Length < ihl || p.Length > len(b) {
		return p, ErrTruncated
	}
	p.Flow.Src = mapped(b[12:16])
	p.Flow.Dst = mapped(b[16:20])
	p.Flow.Proto = b[9]
	// More-fragments or an offset: only the first fragment has ports, and all
	// fragments of a flow must take one path.
	if p.Fragment = binary.BigEndian.Uint16(b[6:])&0x3fff != 0; p.Fragment {
		return p, nil
	}
	l4 := b[ihl:p.Length]
	switch p.Flow.Proto {
	case ProtoUDP:
		if len(l4) < 8 {
			return p, ErrTruncated
		}
		p.ports(l4)
	case ProtoTCP:
		if len(l4) < 20 {
			return p, ErrTruncated
		}
		offset := int(l4[12]>>4) * 4
		if offset < 20 {
			return p, ErrHeaderLength
		}
		if offset > len(l4) {
			return p, ErrTruncated
		}
		p.ports(l4)
		p.Seq = binary.BigEndian.Uint32(l4[4:])
		p.Flags = l4[13]
		p.Payload = len(l4) - offset
	}
	return p, nil
}

func (p *Packet) ports(l4 []byte) {
	p.Flow.SrcPort = binary.BigEndian.Uint16(l4[0:])
	p.Flow.DstPort = binary.BigEndian.Uint16(l4[2:])
}

func mapped(b []byte) (a [16]byte) {
	a[10], a[11] = 0xff, 0xff
	copy(a[12:], b)
	return a
}
