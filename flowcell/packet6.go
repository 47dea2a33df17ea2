package flowcell

import "encoding/binary"

// IPv6 extension headers that stand before the transport header (RFC 8200 §4).
const (
	hopByHop           = 0
	routing            = 43
	fragment           = 44
	destinationOptions = 60
)

// maxExtensions is how many extension headers Parse follows. RFC 8200 §4.1
// has each occur at most once, the destination options twice.
const maxExtensions = 8

// parse6 reads an IPv6 packet of size bytes; b has 20 of them.
func (p *Packet) parse6(b []byte, size int) error {
	if b[0]>>4 != 6 {
		return ErrVersion
	}
	if len(b) < 40 {
		return ErrTruncated
	}
	p.Length = 40 + int(binary.BigEndian.Uint16(b[4:]))
	if p.Length > size {
		return ErrTruncated
	}
	p.ID = binary.BigEndian.Uint16(b[2:])
	p.Flow.Src = Address{binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])}
	p.Flow.Dst = Address{binary.BigEndian.Uint64(b[24:]), binary.BigEndian.Uint64(b[32:])}
	if p.Flow.Src.isMapped() || p.Flow.Dst.isMapped() {
		return ErrMapped // it would be taken for a flow of IPv4
	}
	p.Fragment, p.Extensions = false, false
	next, rest := b[6], b[40:min(p.Length, len(b))]
	missing := p.Length - 40 - len(rest)
	for range maxExtensions {
		switch next {
		default:
			p.Flow.Proto = next
			return p.transport(rest, len(rest)+missing)
		case fragment:
			if len(rest) < 8 {
				return ErrTruncated
			}
			// An atomic fragment (RFC 6946) is the whole datagram.
			if binary.BigEndian.Uint16(rest[2:])&^6 != 0 {
				p.Fragment, p.Extensions = true, true
				p.Flow.Proto = rest[0]
				return p.transport(nil, 0)
			}
			p.Extensions = true
			next, rest = rest[0], rest[8:]
		case hopByHop, routing, destinationOptions:
			if len(rest) < 8 {
				return ErrTruncated
			}
			n := 8 + 8*int(rest[1])
			if n > len(rest) {
				return ErrTruncated
			}
			p.Extensions = true
			next, rest = rest[0], rest[n:]
		}
	}
	return ErrExtensions
}
