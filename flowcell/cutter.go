package flowcell

import "time"

// LeastTimeout is the pause after which what is sent again is taken to be so
// because of a timeout: less than any timeout in use (a shorter one doubles until
// it is longer), and so long that little is on its way that could be overtaken.
const LeastTimeout = 5 * time.Millisecond

// Cutter cuts one flow into units: it is what must be remembered of a flow, to
// be kept in a Table, 24 bytes. The zero value is a flow that has not begun, whose
// flowcells are numbered from 0.
type Cutter struct {
	last     time.Duration // when data was last sent
	highest  uint32        // sequence number behind all data sent
	bytes    int32         // in this flowcell so far
	segments int32         // in this flowcell so far
	cell     uint16        // its number, modulo Cells
	open     bool          // a unit is under way
	sent     bool          // data was: last and highest are known
}

// NewCutter returns a flow that has not begun. Its flowcells are numbered from
// one drawn from seed, such as the flow's hash, on.
func NewCutter(seed uint64) Cutter { return Cutter{cell: uint16(seed) % Cells} }

// Next tells of the packet of the flow that is sent at now whether a new unit
// begins with it, so that a path must be chosen, and in a flowcell its Number.
// A packet of more than one segment is one that a kernel will cut, a
// super-segment; the Number is its first segment's. It is never divided between
// units. seq is the TCP sequence number of its first byte, payload counts the TCP
// payload of all segments together.
//
// Packets without payload are not to be passed; see Edge. A retransmission is a
// packet like others: it belongs to the unit in which it is sent. But one that
// follows a pause of more than LeastTimeout, and so a timeout, begins a flowcell
// or a flowlet: it would follow what was lost into the hole, timeout after
// timeout, until the unit is full.
//
// A packet that is larger than a flowcell is one of its own. If it has more
// segments than a flowcell (of a small MSS) then a kernel will count on through
// the numbers that follow; those are left out.
func (c *Cutter) Next(u Unit, seq uint32, payload, segments int, now time.Duration) (n Number, begins bool) {
	switch u.Kind {
	case UnitPacket:
		return 0, true
	case UnitFlow:
		begins = !c.open
		c.open = true
		return 0, begins
	}
	pause := now - c.last
	if end := seq + uint32(payload); !c.sent || int32(end-c.highest) > 0 {
		c.highest = end
	} else if pause > LeastTimeout {
		c.open = false
	}
	c.last, c.sent = now, true
	if u.Kind == UnitFlowlet {
		begins = !c.open || pause > u.Gap
		c.open = true
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

// Edge is for a packet without payload that is sent at now and begins or ends the
// connection: a SYN, a FIN or a RST. It belongs to the unit of the data before it,
// which it so cannot overtake: that has not ended if ok is true, and in a flowcell
// n is the Number of its last segment, which the packet takes, too. ok is false if
// no data was sent, or none within LeastTimeout: then there is nothing to overtake,
// and the packet goes by any path; by another each time, for it may be sent again
// after a timeout.
func (c *Cutter) Edge(now time.Duration) (n Number, ok bool) {
	if !c.sent || now-c.last > LeastTimeout {
		return 0, false
	}
	return MakeNumber(c.cell, 0) + Number(c.segments-1), true
}

// End ends the unit under way: the next packet begins another. It is for when
// the unit's path is gone.
func (c *Cutter) End() { c.open = false }
