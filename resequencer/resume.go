package resequencer

import (
	"time"

	"weft/flowcell"
)

// Resume tells that a flow goes on at next, by now. Data before it went past the Buffer, in
// order. It does nothing while the Buffer waits for a hole of the flow (see Place). What is
// known of the flow's delays stays. Its numbers must prove again that they count.
//
// To make room for the flow the Buffer may forget another one that holds packets. Expire
// and Flush return these.
func (b *Buffer[P]) Resume(flow *flowcell.FiveTuple, next uint32, now time.Duration) {
	b.now = max(b.now, now)
	b.stats.peak()
	f := b.flows.Get(flow, b.now)
	if f == nil {
		f, _ = b.flows.Use(flow, b.now)
		b.forgotten = append(b.forgotten, b.take()...)
		b.changes++
		f.delays.ewma = b.config.Hold / alpha
	} else if b.waiting(f) {
		return
	}
	if f.next, f.phase = next, normal; f.cells != unnumbered {
		f.cells = 0
	}
	f.lostFrom, f.lostTo = next, next
	f.pace.begin(next, b.now)
}

// GiveUp declares lost what is missing of a flow below upTo: its caller knows that it cannot
// come any more. It appends to out what need not wait then, and returns out.
func (b *Buffer[P]) GiveUp(flow *flowcell.FiveTuple, upTo uint32, out []P) []P {
	f := b.flows.Get(flow, b.now)
	b.stats.peak()
	b.out = out
	for f != nil && f.held != nil && ahead(f.held.first().start, upTo) <= 0 {
		b.releaseFirst(f, &b.stats.Loss)
	}
	return b.take()
}

// Place returns the sequence number at which a flow goes on. waits reports that the Buffer
// holds segments of it, or that a hole which it has given up may still be filled late, from
// which it would learn. ok is false for a flow that it does not know. It is for Resume.
func (b *Buffer[P]) Place(flow *flowcell.FiveTuple) (next uint32, waits, ok bool) {
	f := b.flows.Get(flow, b.now)
	if f == nil {
		return 0, false, false
	}
	return f.next, b.waiting(f), true
}

func (b *Buffer[P]) waiting(f *flow[P]) bool {
	return f.held != nil || f.recovering() && b.now-f.lostSince < b.config.Hold
}
