package link

import (
	"encoding/binary"
	"errors"
)

var (
	errHeadroom = errors.New("link: offset of a super-segment must be at least 32 bytes (SuperHeadroom)")
	errNoRoom   = errors.New("link: a buffer to be read into has no room after offset")
)

func haveRoom(bufs [][]byte, offset int) bool {
	for _, b := range bufs {
		if len(b) <= offset {
			return false
		}
	}
	return true
}

// handOver finishes a packet that was read to buf[offset:] with the header h. For
// ReadSuper it puts h before the packet, for Read it does what h asks for. It
// returns false if the packet must be dropped.
func handOver(h VnetHeader, buf []byte, offset, size int, super bool) bool {
	if h.Check(size) != nil {
		return false
	}
	if super {
		h.Put((*[VnetHeaderLen]byte)(buf[offset-VnetHeaderLen:]))
		return true
	}
	if h.GSOType == VnetGSOUDP {
		return false
	}
	h.complete(buf[offset : offset+size])
	return true
}

// truncated reports whether a packet was longer than buf, of which it filled
// size bytes. The kernel does not say so; IP does.
func truncated(buf []byte, size int) bool {
	return size == len(buf) && ipLen(buf) != size
}

// long reports a super-segment of which the IPv4 header cannot say how long it is, and says 0.
func (h VnetHeader) long(b []byte) bool {
	return h.GSOType&^VnetGSOECN == VnetGSOTCPv4 && len(b) > MaxSuperLen && b[0]>>4 == 4 && ipLen(b) == 0
}

// ipLen returns the length that an IP header tells, in bytes; 0 without one.
func ipLen(b []byte) int {
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		return int(binary.BigEndian.Uint16(b[2:]))
	case len(b) >= 40 && b[0]>>4 == 6:
		return 40 + int(binary.BigEndian.Uint16(b[4:]))
	}
	return 0
}
