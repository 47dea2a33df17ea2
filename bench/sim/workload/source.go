// Package workload makes the flows of an experiment: senders, receivers, times and sizes.
// It is pure: no I/O, no clock, no goroutine; random numbers come from a seed.
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
	Class    uint8  // class of the experiment's statistics
	Job      uint32 // for the Source: the job that the flow belongs to
	// Alone has a connection of its own, where others share those of their hosts.
	Alone  bool
	source uint8 // of those that are merged
}

// Source begins flows. The simulator calls it from one goroutine.
type Source interface {
	// Next returns the next flow that begins by itself, in the order of Start. It is
	// called when the one before has begun. ok is false if there are no more.
	Next() (Flow, bool)
	// Done takes every flow whose last byte was acknowledged, and when. It may begin
	// other flows, at that time or later.
	Done(f Flow, at time.Duration, begin func(Flow))
}
