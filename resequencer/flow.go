package resequencer

import (
	"time"

	"weft/flowcell"
)

// flow is the state of one direction of a connection.
//
// All held packets begin above next, or at next where data in order waits to be merged.
type flow[P any] struct {
	next  uint32          // all below is delivered or declared lost
	id    flowcell.Number // of the segment that ends at next
	quiet uint8           // segments in order since delays was told
	cells numbering
	phase phase
	// established flows have sent quietPackets in order. They are forgotten last: a flood
	// has no such flows.
	established bool
	began       bool   // isn is known
	kept        bool   // it is in no table
	isn         uint32 // of the SYN that began the flow

	held   *holding[P] // nil if nothing is held
	tally  FlowStats
	delays delays

	pace   pace
	strays strays

	// The hole that was declared lost last; lostTo is lostFrom when it has been
	// filled since, or there was none.
	lostFrom, lostTo uint32
	lostSince        time.Duration
	lostID           flowcell.Number // of what was behind it
}

// phase is Juggler's; the other disciplines know only normal.
type phase uint8

const (
	normal   phase = iota // active merging, and post-merge when nothing is held
	buildUp               // the first segments: the sequence may begin below them
	recovery              // a hole was declared lost: nothing is held until it is filled
)

// start makes seq the first sequence number of f, which holds nothing.
func (f *flow[P]) start(s *flowcell.Packet, now time.Duration) {
	*f = flow[P]{
		next:   s.Seq,
		id:     flowcell.Number(s.ID),
		began:  s.Flags&flowcell.FlagSYN != 0,
		isn:    s.Seq,
		delays: f.delays,
		pace:   pace{from: s.Seq, since: now, most: f.pace.most},

		established: f.established,
		kept:        f.kept,
		tally:       f.tally,
	}
	f.lostFrom, f.lostTo = s.Seq, s.Seq
}

// begins reports whether s is the SYN of a new connection rather than a late copy
// of the one that began f. After a late copy, the flow must not wait for data
// that came long ago.
func (f *flow[P]) begins(s *flowcell.Packet) bool {
	return s.Flags&flowcell.FlagSYN != 0 && !(f.began && f.isn == s.Seq)
}

// highest is the highest sequence number seen.
func (f *flow[P]) highest() uint32 {
	if f.held != nil && ahead(f.held.top, f.next) > 0 {
		return f.held.top
	}
	return f.next
}

// lost takes note that the hole before r is given up.
func (f *flow[P]) lost(r *run[P]) {
	f.lostFrom, f.lostTo = f.next, r.start
	f.lostSince = r.since
	f.lostID = r.id
}

// filled takes note that a segment filled the hole before r. If it was sent
// after r was, that is a retransmission and says nothing of the paths.
func (f *flow[P]) filled(by flowcell.Number, r *run[P], now time.Duration) {
	if f.overtaken(by, r.id) {
		f.delays.observe(now - r.since)
	}
}

// overtaken reports whether a segment that came after another was sent before it, or may
// have been. Equal numbers say nothing, unless they are those of a flowcell, whose segments
// are sent in the order in which they arrive: IPv6 has one number for all of them.
func (f *flow[P]) overtaken(late, other flowcell.Number) bool {
	after := sentAfter(late, other)
	return after < 0 || after == 0 && f.cells != numbered
}

// recovering reports whether a hole was declared lost and not filled since.
func (f *flow[P]) recovering() bool { return f.lostFrom != f.lostTo }

// inactive is the time after which a flow that sends nothing is not expected to
// have anything on its way: TCP's least retransmission timeout in most stacks.
const inactive = 200 * time.Millisecond

// rank orders flows for eviction, as in Juggler: first the inactive, then the active,
// last those that recover from a loss and would wait for it once more. Flows that were
// hardly seen go before established ones, so that a flood of flows evicts itself.
func (f *flow[P]) rank(idle time.Duration) uint8 {
	switch {
	case f.held == nil && (idle > inactive || !f.established):
		return 0
	case !f.established:
		return 1
	case f.held == nil && !f.recovering():
		return 2
	case f.held != nil:
		return 3
	}
	return 4
}
