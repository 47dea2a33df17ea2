package flowcell

import "time"

// Cutter cuts one flow into units: it is what must be remembered of a flow, to
// be kept in a Table. The zero value is a flow that has not begun, whose
// flowcells are numbered from 0.
type Cutter struct {
	last     time.Duration // when the latest packet was sent
	bytes    int32         // in this flowcell so far
	segments int32         // in this flowcell so far
	cell     uint16        // its number, modulo Cells
	open     bool          // a unit is under way
}

// NewCutter returns a flow that has not begun. Its flowcells are numbered from
// one drawn from seed, such as the flow's hash, on.
func NewCutter(seed uint64) Cutter { return Cutter{cell: uint16(seed) % Cells} }

// Next tells of the packet of the flow that is sent at now whether a new unit
// begins with it, so that a path must be chosen, and in a flowcell its Number.
// A packet of more than one segment is one that a kernel will cut, a
// super-segment; the Number is its first segment's. It is never divided between
// units. payload counts the TCP payload of all segments together.
//
// Packets without payload are not to be passed. A retransmission is a packet
// like others: it belongs to the unit in which it is sent.
//
// A packet that is larger than a flowcell is one of its own. If it has more
// segments than a flowcell (of a small MSS) then a kernel will count on through
// the numbers that follow; those are left out.
func (c *Cutter) Next(u Unit, payload, segments int, now time.Duration) (n Number, begins bool) {
	switch u.Kind {
	case UnitPacket:
		return 0, true
	case UnitFlow:
		begins = !c.open
		c.open = true
		return 0, begins
	case UnitFlowlet:
		begins = !c.open || now-c.last > u.Gap
		c.open, c.last = true, now
		return 0, begins
	}
	if begins = !c.open || int(c.bytes)+payload > u.Bytes || int(c.segments)+segments > MaxIndex+1; begins {
		c.cell += uint16((c.segments + MaxIndex + 1) >> indexBits) // 0 if the flow begins
		c.bytes, c.segments, c.open = 0, 0, true
	}
	n = MakeNumber(c.cell, uint8(c.segments))
	c.bytes += int32(payload)
	c.segments += int32(segments)
	return n, begins
}

// End ends the unit under way: the next packet begins another. It is for when
// the unit's path is gone.
func (c *Cutter) End() { c.open = false }
