package dataplane

import (
	"weft/flowcell"
	"weft/gso"
)

// segment finds out in how many pieces a packet leaves: in one, unless it is a
// super-segment that the outlet does not take whole. Its segments take a path each
// where the policy says so. It is false if the packet is dropped, and counted.
func (e *Egress) segment(o *Outgoing) bool {
	o.pieces, o.segments, o.whole, o.each = 1, 1, false, false
	if o.MSS == 0 {
		return true
	}
	if e.outlet.whole(o) {
		o.whole = true
		o.segments = (int(o.pkt.Payload) + o.MSS - 1) / o.MSS
		return true
	}
	checksum := e.outlet.checksum()
	if err := e.segmenter.Start(o.Parts, o.MSS, checksum); err != nil {
		e.stats.Malformed++
		return false
	}
	o.Partial = checksum == gso.Partial
	o.CsumStart, o.CsumAt = uint16(e.segmenter.IPHeaderLen()), uint16(e.segmenter.ChecksumAt())
	o.pieces = e.segmenter.Left()
	o.segments = o.pieces
	o.each = o.narrow || !o.pair.plain() && (e.paths.policy.Unit.Kind == flowcell.UnitPacket || !o.pkt.IsTCP())
	return true
}
