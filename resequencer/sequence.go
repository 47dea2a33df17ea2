package resequencer

import "weft/flowcell"

// length is the sequence space that s occupies (RFC 9293 §3.4).
func length(s *flowcell.Packet) uint32 {
	n := uint32(s.Payload)
	if s.Flags&(flowcell.FlagSYN|flowcell.FlagFIN) != 0 {
		n += uint32(s.Flags>>1&1) + uint32(s.Flags&1)
	}
	return n
}

// maxWindow is the greatest distance between sequence numbers of one connection
// that are on their way together. TCP allows 2³⁰ (RFC 7323 §2.3), but no fabric's
// bandwidth times delay comes near this.
const maxWindow = 64 << 20

// ahead is how far sequence number a lies ahead of b, modulo 2³²: negative if
// behind.
func ahead(a, b uint32) int32 { return int32(a - b) }
