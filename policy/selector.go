package policy

import "time"

// Selector chooses the paths of one flow's data, by what became of the flow's packets.
// Both hosts and the simulator ask it. It is pure: it gets the time, which never goes
// back, and whatever it draws comes from the seed with which it was made. It is called by
// one goroutine at a time and must not allocate. What it is told may be wrong (see package
// internal/fate): it may act on that, but not depend on it.
type Selector interface {
	// Next returns the path of the packet, flowcell or flowlet that begins now. It must be
	// one of live, which is ascending, has each path as often as it weighs, is not empty
	// and is not kept. Paths that were live before may be missing.
	Next(live []int, now time.Duration) (path int)
	Heeder
}

// Heeder is told what became of a flow's packets. The path is the one that had carried a
// packet; it need not be live any more.
type Heeder interface {
	// Acked says that the other end has acknowledged a segment that was sent once. An
	// acknowledgement covers many segments at times. marked says that it reports
	// congestion (ECN).
	Acked(path int, marked bool, now time.Duration)
	// Lost says that a segment is sent again. timeout says that TCP has waited long for an
	// acknowledgement, which tells of a path that is dead rather than full.
	Lost(path int, timeout bool, now time.Duration)
}

// heeding is what a row of the table says of a policy that is Heeding.
type heeding struct {
	how  string // that it chooses
	make func(seed uint64) Selector
}

// Heeds makes a policy choose by selectors of flows, which make returns. how says, in a few
// words, by what these choose. Until acknowledgements come, and for them, its Rule decides.
func (p Policy) Heeds(how string, make func(seed uint64) Selector) Policy {
	p.Aware, p.heeding = Heeding, &heeding{how, make}
	return p
}

// NewSelector returns the selector of a flow that begins. The policy must be Heeding.
func (p Policy) NewSelector(seed uint64) Selector { return p.heeding.make(seed) }
