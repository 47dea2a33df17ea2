package encap

import (
	"encoding/binary"
	"errors"
)

// The length of weft's header behind the outer UDP header, in bytes. It does not include
// the outer IP and UDP headers, 28 or 48 bytes.
const (
	UDPOverhead       = 12
	UDPSealedOverhead = UDPOverhead + nonceSize + tagSize // with a MAC: 40
	UDPHiddenOverhead = UDPSealedOverhead + pairSize      // with an encrypted inner packet: 44
)

const (
	udpVersion = 1

	udpSealed   = 1 << 0
	udpPartial  = 1 << 1
	udpFeedback = 1 << 2
	udpHidden   = 1 << 3
)

// Errors about datagrams. Callers count by them; they are returned unwrapped.
var (
	ErrUDPVersion  = errors.New("encap: unknown version of weft's UDP header")
	ErrUDPFlags    = errors.New("encap: flags in weft's UDP header that do not go together, or feedback without its flag")
	ErrUDPSealed   = errors.New("encap: datagram with a MAC, but no key is configured for its sender")
	ErrUDPPlain    = errors.New("encap: datagram without a MAC, but a key is configured for its sender")
	ErrUDPTrailing = errors.New("encap: bytes behind the inner packet")
)

// UDPHeader is what weft puts between the outer UDP header and one inner IPv4
// or IPv6 packet. The outer source port stands for the path: a fabric that
// knows nothing of weft spreads source ports by plain ECMP. The destination
// port is the receiver's.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------+-------+---------------+-------------------------------+
//	|Version|  Flags|      Path     |            Flowcell           |
//	+-------+-------+---------------+-------------------------------+
//	|                         Packet number                         |
//	+---------------------------------------------------------------+
//	|                            Feedback                           |
//	+---------------+-----------------------------------------------+ ┐
//	|     Key ID    |                      Salt                     | │
//	+---------------+-----------------------------------------------+ │ only
//	|                            Counter                            | │ with
//	|                                                               | │ the
//	+---------------------------------------------------------------+ │ flag
//	|                                                               | │ for a
//	|                              Tag                              | │ MAC
//	|                           (16 bytes)                          | │
//	|                                                               | │
//	+---------------------------------------------------------------+ ┘
//	|                             Pair                              |   only if it is encrypted
//	+---------------------------------------------------------------+
//	|                   inner IPv4 or IPv6 packet                   |
//
// Version 1. A receiver refuses other versions, so that a later format can change what
// follows.
//
// Flags, from the lowest: a MAC is present; the inner transport checksum is
// partial (see Partial); feedback is present; the inner packet is encrypted, which
// needs a MAC.
//
// All in network byte order. Key ID, salt and counter are one nonce, see
// Sealer; Pair, see UDPPair. All forms keep the inner header 4-byte aligned behind an
// outer one.
type UDPHeader struct {
	// Path is the sender's number of the path, which its source port stands for. NAT may
	// change the port, and the receiver needs the path's number to give feedback on it.
	Path uint8
	// Flowcell is the Number of package flowcell: the flowcell in the high 10 bits, the
	// segment's index in the low 6. A gap inside a flowcell is loss; a gap between two
	// may be reordering. A sender that sprays packets counts them with Number.Count. 0
	// says nothing.
	Flowcell uint16
	// Number counts the packets of the inner flow modulo 2^32. So the order of every
	// inner protocol can be restored, also of those without sequence numbers.
	Number uint32
	// Feedback is what the sender has seen of a path that leads to it: the path in the
	// high 8 bits, its quantised metric in the low 24. It is valid only with HasFeedback.
	Feedback    uint32
	HasFeedback bool
	// Partial says that the inner transport checksum is not computed: the field holds
	// only the sum of the pseudo header, as with the kernel's CHECKSUM_PARTIAL. The outer
	// UDP checksum, or the MAC, covers the same bytes, so a checksum is computed once,
	// and often by the NIC. Partial is legal only if the outer checksum is not 0 (see
	// CheckZeroChecksum) or there is a MAC. The receiver completes the checksum before it
	// passes the packet on.
	Partial bool
}

// PutUDP writes the header without a MAC into b[:UDPOverhead], the headroom of
// an inner packet.
func PutUDP(b []byte, h UDPHeader) { h.put((*[UDPOverhead]byte)(b), 0) }

func (h *UDPHeader) put(b *[UDPOverhead]byte, flags byte) {
	feedback := uint32(0)
	if h.HasFeedback {
		flags |= udpFeedback
		feedback = h.Feedback
	}
	if h.Partial {
		flags |= udpPartial
	}
	b[0] = udpVersion<<4 | flags
	b[1] = h.Path
	binary.BigEndian.PutUint16(b[2:], h.Flowcell)
	binary.BigEndian.PutUint32(b[4:], h.Number)
	binary.BigEndian.PutUint32(b[8:], feedback)
}

// ParseUDP checks the payload of an outer datagram without a MAC. It returns its header
// and, in the bytes of b, its inner packet: exactly one IPv4 or IPv6 packet, whose
// lengths agree and whose checksums are not checked. It refuses a datagram with a MAC:
// see Opener.
//
// Errors: ErrTruncated, ErrUDPVersion, ErrUDPFlags, ErrUDPSealed, ErrVersion, ErrIHL,
// ErrUDPTrailing.
func ParseUDP(b []byte) (h UDPHeader, inner []byte, err error) {
	h, form, err := parseUDP(b)
	switch {
	case err != nil:
		return UDPHeader{}, nil, err
	case form != 0:
		return UDPHeader{}, nil, ErrUDPSealed
	}
	inner = b[UDPOverhead:]
	if err := checkInner(inner); err != nil {
		return UDPHeader{}, nil, err
	}
	return h, inner, nil
}

// parseUDP reads the first 12 bytes. The form is 0, udpSealed, or udpSealed|udpHidden.
func parseUDP(b []byte) (h UDPHeader, form byte, err error) {
	if len(b) < UDPOverhead {
		return h, 0, ErrTruncated
	}
	if b[0]>>4 != udpVersion {
		return h, 0, ErrUDPVersion
	}
	flags := b[0] & 0xf
	h = UDPHeader{
		Path:        b[1],
		Flowcell:    binary.BigEndian.Uint16(b[2:]),
		Number:      binary.BigEndian.Uint32(b[4:]),
		Feedback:    binary.BigEndian.Uint32(b[8:]),
		HasFeedback: flags&udpFeedback != 0,
		Partial:     flags&udpPartial != 0,
	}
	form = flags & (udpSealed | udpHidden)
	if form == udpHidden || h.Feedback != 0 && !h.HasFeedback {
		return h, 0, ErrUDPFlags
	}
	return h, form, nil
}

// checkInner reports whether b is one IPv4 or IPv6 packet, no more and no less.
func checkInner(b []byte) error {
	length := 0
	switch {
	case len(b) == 0:
		return ErrTruncated
	case b[0]>>4 == 6 && len(b) < 40:
		return ErrTruncated
	case b[0]>>4 == 6:
		length = 40 + int(binary.BigEndian.Uint16(b[4:])) // no jumbograms: UDP has none
	default:
		var err error
		if _, length, err = lengths(b); err != nil {
			return err
		}
	}
	switch {
	case length > len(b):
		return ErrTruncated
	case length < len(b):
		return ErrUDPTrailing
	}
	return nil
}
