// Package workload makes the flows of an experiment: who sends to whom, when and
// how much. It is pure: no I/O, no clock, no goroutine; what is random comes from
// a seed.
package workload

import (
	"time"

	"weft/topology"
)

// Flow is one transfer.
type Flow struct {
	Start    time.Duration // since the simulation's
	Src, Dst topology.NodeID
	Bytes    int64  // of payload; 0: it never ends
	Class    uint8  // what the experiment counts it as
	Job      uint32 // the Source's own: to what it belongs
	source   uint8  // of those that are merged
}

// Source begins flows. The simulator calls it from one goroutine.
type Source interface {
	// Next returns the flow that begins next by itself, in the order of Start; it
	// is called when the one before has begun. False: no more.
	Next() (Flow, bool)
	// Done takes every flow whose last byte was acknowledged at a time. It may begin
	// others, at that time or later.
	Done(f Flow, at time.Duration, begin func(Flow))
}
