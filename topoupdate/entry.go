package topoupdate

import (
	"encoding/binary"
	"math"
	"time"

	"weft/topology"
)

// firstSequence is what an incarnation begins with, so that the wrap of
// sequence numbers is met within everybody's first minutes and not after years.
const firstSequence = math.MaxUint32 - 7

// version orders what one switch says: by incarnation, then by sequence.
type version struct {
	incarnation uint64
	sequence    uint32
}

// compare is negative if v is older than u, zero if they are the same. Sequence numbers
// are compared as in RFC 1982. The RFC leaves open which of two numbers exactly half the
// circle apart is newer. Here it is the greater one, so that one of any two switches
// gives in.
func (v version) compare(u version) int {
	switch {
	case v.incarnation != u.incarnation:
		if v.incarnation < u.incarnation {
			return -1
		}
		return 1
	case v.sequence == u.sequence:
		return 0
	}
	d := int32(v.sequence - u.sequence)
	if d > 0 || d == math.MinInt32 && v.sequence > u.sequence {
		return 1
	}
	return -1
}

// claim is an entry in a message: which of the originator's ports are down.
// bitmap is the packet's: bit i%8 of byte i/8 stands for port i; what is beyond
// it is up.
type claim struct {
	originator topology.NodeID
	version
	age    time.Duration
	bitmap []byte
}

// Layout of an entry: originator, incarnation, sequence, age in ms, bytes of
// the bitmap that follows.
const (
	entryIncarnation = 4
	entrySequence    = 12
	entryAge         = 16
	entryBitmap      = 20
	entrySize        = 22
)

// appendEntry appends an entry whose bitmap is given as words, and cuts it
// after the last byte that is not zero.
func appendEntry(b []byte, originator topology.NodeID, v version, age time.Duration, down []uint64) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(originator))
	b = binary.BigEndian.AppendUint64(b, v.incarnation)
	b = binary.BigEndian.AppendUint32(b, v.sequence)
	b = binary.BigEndian.AppendUint32(b, milliseconds(age))
	b = append(b, 0, 0)
	start := len(b)
	end := start
	for _, w := range down {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	for i := start; i < len(b); i++ {
		if b[i] != 0 {
			end = i + 1
		}
	}
	b = b[:end]
	binary.BigEndian.PutUint16(b[start-2:], uint16(end-start))
	return b
}

// milliseconds rounds up, so that an entry does not get younger by travelling.
func milliseconds(d time.Duration) uint32 {
	ms := (max(d, 0) + time.Millisecond - 1) / time.Millisecond
	return uint32(min(ms, math.MaxUint32))
}

// nextEntry cuts the first entry off b. The claim's bitmap is b's.
//
// Errors: RejectTruncated, RejectTrailing for a bitmap that ends in zeros.
func nextEntry(b []byte) (c claim, rest []byte, err error) {
	if len(b) < entrySize {
		return claim{}, nil, RejectTruncated
	}
	n := int(binary.BigEndian.Uint16(b[entryBitmap:]))
	if len(b) < entrySize+n {
		return claim{}, nil, RejectTruncated
	}
	c = claim{
		originator: topology.NodeID(binary.BigEndian.Uint32(b)),
		version: version{
			incarnation: binary.BigEndian.Uint64(b[entryIncarnation:]),
			sequence:    binary.BigEndian.Uint32(b[entrySequence:]),
		},
		age:    time.Duration(binary.BigEndian.Uint32(b[entryAge:])) * time.Millisecond,
		bitmap: b[entrySize : entrySize+n],
	}
	if n > 0 && c.bitmap[n-1] == 0 {
		return claim{}, nil, RejectTrailing
	}
	return c, b[entrySize+n:], nil
}

// Entry is a switch's report about itself, as the database holds it.
type Entry struct {
	Originator  topology.NodeID
	Incarnation uint64        // number of the originator's start
	Sequence    uint32        // wraps, RFC 1982
	Age         time.Duration // since it was made, as far as is known
	Down        []int         // the originator's ports that are down, ascending
	From        int           // the port on which it came; Own
}
