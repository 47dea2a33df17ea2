package flowcell

import "time"

// LeastTimeout is the pause that marks a timeout: a resend at least this long after the
// flow's last segment counts as a timeout's. It is less than any timeout in use; a
// shorter timeout doubles until it is longer. After such a pause few packets are in
// flight that could be overtaken.
const LeastTimeout = 5 * time.Millisecond

// Cutter cuts one flow into units. It holds the flow's state, in 24 bytes, and is kept in
// a Table. The zero value is a flow that has not begun; its flowcells are numbered from
// 0.
type Cutter struct {
	last     time.Duration // when data was last sent
	highest  uint32        // sequence number behind all data sent
	bytes    int32         // in this flowcell so far
	segments int32         // in this flowcell so far
	cell     uint16        // its number, modulo Cells
	open     bool          // a unit is under way
	sent     bool          // data was: last and highest are known
}

// NewCutter returns a flow that has not begun. The number of its first flowcell is drawn
// from seed, for example the flow's hash.
func NewCutter(seed uint64) Cutter { return Cutter{cell: uint16(seed) % Cells} }

// Next takes a packet of the flow that is sent at now. begins says whether a new unit
// begins with the packet, so that a path must be chosen. n is the packet's Number if the
// unit is a flowcell. A packet of more than one segment is a super-segment that a kernel
// will cut. It is never divided between units, and its Number is the first segment's. seq
// is the TCP sequence number of the first byte. payload is the TCP payload of all
// segments together, in bytes.
//
// Packets without payload go to Edge. A retransmission belongs to the unit in which it is
// sent. After a pause of LeastTimeout it begins a flowcell or a flowlet. Otherwise it
// would take the lost packet's dead path, timeout after timeout, until the unit is full.
//
// A packet that is larger than a flowcell is a flowcell of its own. If it has more
// segments than a flowcell may have (a small MSS), a kernel counts through the numbers
// that follow; Next skips those.
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
	if c.TimedOut(seq, payload, now) {
		c.open = false
	} else if end := seq + uint32(payload); !c.sent || int32(end-c.highest) > 0 {
		c.highest = end
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

// TimedOut reports whether a packet with payload that is sent at now is a timeout's: all of it
// was sent before, and nothing since LeastTimeout. Ask before Next takes the packet. The path
// of the unit before may be dead, though nothing else tells so.
func (c *Cutter) TimedOut(seq uint32, payload int, now time.Duration) bool {
	return c.sent && int32(seq+uint32(payload)-c.highest) <= 0 && now-c.last > LeastTimeout
}

// Edge takes a packet without payload that is sent at now and begins or ends the
// connection: a SYN, a FIN or a RST. The packet belongs to the unit of the data before
// it, so that it cannot overtake that data. ok says whether that unit is still open. In a
// flowcell, n is then the Number of the unit's last segment, and the packet takes it,
// too. ok is false if no data was sent within LeastTimeout. Then there is no data to
// overtake, and the packet takes any path, another one each time, since it may be sent
// again after a timeout.
func (c *Cutter) Edge(now time.Duration) (n Number, ok bool) {
	if !c.sent || now-c.last > LeastTimeout {
		return 0, false
	}
	return MakeNumber(c.cell, 0) + Number(c.segments-1), true
}

// End ends the unit under way: the next packet begins another. Call it when the
// unit's path is gone.
func (c *Cutter) End() { c.open = false }
