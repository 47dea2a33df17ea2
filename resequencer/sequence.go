package resequencer

import "weft/flowcell"

// Segment is what Push must know of a TCP segment.
type Segment struct {
	Flow    flowcell.FiveTuple
	Seq     uint32
	Payload int   // bytes of TCP payload, 0 to 2³⁰
	Flags   uint8 // flowcell.FlagSYN and so on
	Size    int   // bytes accounted against the bounds, not negative
}

// length is the sequence space that s occupies (RFC 9293 §3.4).
func (s *Segment) length() uint32 {
	n := uint32(s.Payload)
	if s.Flags&flowcell.FlagSYN != 0 {
		n++
	}
	if s.Flags&flowcell.FlagFIN != 0 {
		n++
	}
	return n
}

// maxWindow is how far the sequence numbers of one connection that are on their
// way together can lie apart. TCP allows 2³⁰ (RFC 7323 §2.3), but no fabric's
// bandwidth times delay comes near this, and the less is believed the sooner a
// flow recovers from a corrupt number.
const maxWindow = 64 << 20

// ahead is how far sequence number a lies ahead of b, modulo 2³²: negative if
// behind.
func ahead(a, b uint32) int32 { return int32(a - b) }

// plausible reports whether two numbers can belong to one connection at one
// time.
func plausible(a, b uint32) bool {
	d := ahead(a, b)
	return -maxWindow <= d && d <= maxWindow
}

// highest is the highest sequence number seen at some place.
type highest uint32

// see takes note of a segment and reports whether it begins below.
func (h *highest) see(seq, end uint32) (reordered bool) {
	top := uint32(*h)
	if !plausible(seq, top) {
		*h = highest(end)
		return false
	}
	if ahead(end, top) > 0 {
		*h = highest(end)
	}
	return ahead(seq, top) < 0
}
