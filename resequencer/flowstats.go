package resequencer

import "weft/flowcell"

// FlowStats counts what became of the segments of a flow since it began, or since it was remembered
// anew.
type FlowStats struct {
	OutOfOrder uint64 // arrived so, see Stats.ArrivedOutOfOrder
	Held       uint64 // waited for a segment before them
}

// FlowStats returns the counters of a flow; ok is false if it is not remembered.
func (b *Buffer[P]) FlowStats(flow *flowcell.FiveTuple) (s FlowStats, ok bool) {
	f := b.flows.Get(flow, b.now)
	if f == nil {
		return s, false
	}
	return f.tally, true
}

// outOfOrder counts a segment of f that arrived out of order.
func (b *Buffer[P]) outOfOrder(f *flow[P]) {
	b.stats.ArrivedOutOfOrder++
	f.tally.OutOfOrder++
}
