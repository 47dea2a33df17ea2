package policy

import "time"

// Selector chooses the paths of one flow's data from the fate of the flow's packets.
// Hosts and the simulator call it. It is pure: it gets the time, which never goes back,
// and draws all random numbers from the seed with which it was made. One goroutine at a
// time calls it. It must not allocate. What it is told may be wrong (see package
// internal/fate): it may act on that, but must not depend on it.
type Selector interface {
	// Next returns the path of the packet, flowcell or flowlet that begins now. The path
	// must be one of live. live is ascending, has each path as often as it weighs, and is
	// not empty. Next must not keep it. Paths that were live before may be missing.
	Next(live []int, now time.Duration) (path int)
	Heeder
}

// Heeder is told the fate of a flow's packets. path is the path that carried the packet;
// it need not be live any more.
type Heeder interface {
	// Acked says that the other end has acknowledged a segment that was sent only once.
	// One acknowledgement may cover many segments; Acked is called for each. marked says
	// that the acknowledgement reports congestion (ECN).
	Acked(path int, marked bool, now time.Duration)
	// Lost says that a segment is sent again. timeout says that TCP has waited long for
	// an acknowledgement, so the path is more likely dead than full.
	Lost(path int, timeout bool, now time.Duration)
}

// heeding is what a row of the table says of a policy that is Heeding.
type heeding struct {
	how  string // that it chooses
	make func(seed uint64) Selector
}

// Heeds returns p with paths chosen by selectors of flows, which make returns. how says
// in a few words how they choose. The Rule of p decides until acknowledgements come, and
// for the flow's own acknowledgements.
func (p Policy) Heeds(how string, make func(seed uint64) Selector) Policy {
	p.Aware, p.heeding = Heeding, &heeding{how, make}
	return p
}

// NewSelector returns the selector of a new flow. The policy must be Heeding.
func (p Policy) NewSelector(seed uint64) Selector { return p.heeding.make(seed) }
