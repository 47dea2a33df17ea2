// Package gso cuts super-segments of TCP into segments, and of UDP into datagrams, as
// Linux's generic segmentation offload does (net/ipv4/tcp_offload.c, tcp_gso_segment, and
// udp_offload.c, __udp_gso_segment). It serves devices that do not take super-segments,
// and senders that send each packet by another path. It is the inverse of
// weft/resequencer/gro. Pure.
package gso

import (
	"encoding/binary"
	"errors"

	"weft/flowcell"
	"weft/internal/checksum"
)

// Errors of Segmenter.Start. Returned unwrapped.
var (
	ErrHeaders = errors.New("gso: not TCP or UDP behind a plain IPv4 or IPv6 header, all in the first part")
	ErrMSS     = errors.New("gso: a segment size of 0")
	ErrLength  = errors.New("gso: the parts are not as long as the IP header says, or segments would have no length")
)

const (
	ipv4Header = 20
	ipv6Header = 40
	tcpHeader  = 20
	udpHeader  = 8

	maxLength = 65535 // that an IPv4 header can say

	tcpChecksum = 16 // where it is in the header
	udpChecksum = 6

	// Flags that only the last segment has, and that only the first has: CWR is sent
	// once (RFC 3168 §6.1.2).
	lastOnly  = flowcell.FlagPSH | flowcell.FlagFIN
	firstOnly = flowcell.FlagCWR
)

// Checksum says how to make the segments' TCP or UDP checksums.
type Checksum uint8

// The ways.
const (
	Complete Checksum = iota // computed
	Partial                  // the sum of the pseudo-header, for a device with checksum offload
)

// Segmenter cuts one super-segment at a time. The zero value has none. It
// allocates nothing and is not safe for concurrent use.
type Segmenter struct {
	parts    [][]byte // of payload, what is left; the first from offset on
	offset   int
	left     int // bytes of payload
	mss      int
	head     []byte // headers of IP and TCP or UDP
	ip       int    // bytes of IP header
	six      bool   // that is IPv6's
	seq      uint32
	id       uint16
	flags    uint8
	fixed    uint64 // sum of the IPv4 header but for length, ID and checksum
	pseudo   uint64 // sum of the pseudo-header but for the length
	checksum Checksum
	udp      bool
	begun    bool
}

// Start begins to cut the packet in parts. The first part holds all headers. Segments
// have at most mss bytes of payload. The Segmenter reads the parts until Next has
// returned 0, and never writes to them. It ignores the headers' checksums. TCP over IPv4 of
// more than 64 KB has length 0 in its header, as in Linux (BIG TCP). Errors:
// ErrHeaders, ErrMSS, ErrLength.
func (s *Segmenter) Start(parts [][]byte, mss int, c Checksum) error {
	*s = Segmenter{}
	if mss <= 0 {
		return ErrMSS
	}
	if len(parts) == 0 {
		return ErrHeaders
	}
	b, total := parts[0], 0
	for _, p := range parts {
		total += len(p)
	}
	length, protocol := 0, uint8(0)
	switch {
	case len(b) >= ipv4Header && b[0]>>4 == 4 && binary.BigEndian.Uint16(b[6:])&0x3fff == 0: // no fragment
		s.ip = int(b[0]&0xf) * 4
		length = int(binary.BigEndian.Uint16(b[2:]))
		s.id = binary.BigEndian.Uint16(b[4:])
		protocol = b[9]
		s.pseudo = checksum.Sum(b[12:20], uint64(protocol))
	case len(b) >= ipv6Header && b[0]>>4 == 6:
		s.ip, s.six = ipv6Header, true
		length = ipv6Header + int(binary.BigEndian.Uint16(b[4:]))
		protocol = b[6]
		s.pseudo = checksum.Sum(b[8:40], uint64(protocol))
	default:
		return ErrHeaders
	}
	if s.ip < ipv4Header || !s.transport(b, protocol) {
		return ErrHeaders
	}
	if length == 0 && !s.six && !s.udp && total > maxLength && len(s.head)+mss <= maxLength {
		length = total // BIG TCP
	}
	if total != length {
		return ErrLength
	}
	s.parts, s.offset = parts, len(s.head)
	s.left, s.mss = total-len(s.head), mss
	s.checksum = c
	s.begun = true
	if !s.six {
		s.fixed = checksum.Sum(b[12:s.ip], checksum.Sum(b[6:10], uint64(binary.BigEndian.Uint16(b))))
	}
	return nil
}

// transport reads the header behind that of IP; false if it is not all there.
func (s *Segmenter) transport(b []byte, protocol uint8) bool {
	s.udp = protocol == flowcell.ProtoUDP
	size := udpHeader
	if !s.udp {
		if protocol != flowcell.ProtoTCP || len(b) < s.ip+tcpHeader {
			return false
		}
		if size = int(b[s.ip+12]>>4) * 4; size < tcpHeader {
			return false
		}
		s.seq = binary.BigEndian.Uint32(b[s.ip+4:])
		s.flags = b[s.ip+13]
	}
	if len(b) < s.ip+size {
		return false
	}
	s.head = b[:s.ip+size]
	return true
}

// HeaderLen is the length in bytes of the IP and TCP or UDP headers of every segment.
func (s *Segmenter) HeaderLen() int { return len(s.head) }

// IPHeaderLen is the length of the IP header in bytes.
func (s *Segmenter) IPHeaderLen() int { return s.ip }

// ChecksumAt is the offset of the checksum in the TCP or UDP header, in bytes.
func (s *Segmenter) ChecksumAt() int {
	if s.udp {
		return udpChecksum
	}
	return tcpChecksum
}

// Left is the number of segments still to come.
func (s *Segmenter) Left() int {
	if !s.begun {
		return 0
	}
	return max(1, (s.left+s.mss-1)/s.mss)
}

// NextLen is the length of the next segment in bytes; 0 if there is none.
func (s *Segmenter) NextLen() int {
	if !s.begun {
		return 0
	}
	return len(s.head) + min(s.left, s.mss)
}

// Next writes the next segment to dst and returns its length. It returns 0 if there is
// none left, or if dst is too short, which ends the super-segment. The IPv4 ID counts up.
func (s *Segmenter) Next(dst []byte) int {
	if !s.begun {
		return 0
	}
	payload := min(s.left, s.mss)
	n := len(s.head) + payload
	if n > len(dst) {
		*s = Segmenter{}
		return 0
	}
	s.Header(dst)
	at := len(s.head)
	for at < n {
		part := s.parts[0][s.offset:]
		k := copy(dst[at:n], part)
		at += k
		if s.offset += k; k == len(part) {
			s.parts, s.offset = s.parts[1:], 0
		}
	}
	if s.checksum == Complete {
		b := dst[s.ip:n]
		sum := ^checksum.Fold(checksum.Sum(b, s.pseudoHeader(payload)))
		if sum == 0 && s.udp { // which would mean that there is none
			sum = 0xffff
		}
		binary.BigEndian.PutUint16(b[s.ChecksumAt():], sum)
	}
	s.step(payload)
	return n
}

// Header writes the headers of the next segment to dst, which has room for
// HeaderLen bytes. The checksum is zero where it is to be Complete.
func (s *Segmenter) Header(dst []byte) {
	payload := min(s.left, s.mss)
	copy(dst, s.head)
	n := len(s.head) + payload
	if s.six {
		binary.BigEndian.PutUint16(dst[4:], uint16(n-ipv6Header))
	} else {
		binary.BigEndian.PutUint16(dst[2:], uint16(n))
		binary.BigEndian.PutUint16(dst[4:], s.id)
		binary.BigEndian.PutUint16(dst[10:], ^checksum.Fold(s.fixed+uint64(uint16(n))+uint64(s.id)))
	}
	b := dst[s.ip:]
	if s.udp {
		binary.BigEndian.PutUint16(b[4:], uint16(udpHeader+payload))
	} else {
		binary.BigEndian.PutUint32(b[4:], s.seq)
		b[13] = s.flags
		if payload < s.left {
			b[13] &^= lastOnly
		}
	}
	var sum uint16
	if s.checksum == Partial {
		sum = checksum.Fold(s.pseudoHeader(payload))
	}
	binary.BigEndian.PutUint16(b[s.ChecksumAt():], sum)
}

// Payload appends the slices of the next segment's payload to parts, and moves on to the
// segment after it. It is for callers that write the Header and send a segment in parts.
// It also returns the length of the payload in bytes.
func (s *Segmenter) Payload(parts [][]byte) ([][]byte, int) {
	payload := min(s.left, s.mss)
	for need := payload; need > 0; {
		part := s.parts[0][s.offset:]
		k := min(need, len(part))
		parts = append(parts, part[:k])
		need -= k
		if s.offset += k; k == len(part) {
			s.parts, s.offset = s.parts[1:], 0
		}
	}
	s.step(payload)
	return parts, payload
}

// pseudoHeader is the sum of the pseudo-header of a segment.
func (s *Segmenter) pseudoHeader(payload int) uint64 {
	return s.pseudo + uint64(len(s.head)-s.ip+payload)
}

func (s *Segmenter) step(payload int) {
	s.left -= payload
	s.seq += uint32(payload)
	s.id++
	s.flags &^= firstOnly
	if s.left == 0 {
		*s = Segmenter{}
	}
}
