package fluid

import (
	"slices"
	"time"

	"weft/bench/sim/workload"
)

// arrivals are flows yet to begin, in the order of their Start.
type arrivals struct{ flows []workload.Flow }

func (a *arrivals) next() time.Duration {
	if len(a.flows) == 0 {
		return never
	}
	return a.flows[0].Start
}

// add keeps the order; of flows with one Start, that in which they are added.
func (a *arrivals) add(f workload.Flow) {
	i, _ := slices.BinarySearchFunc(a.flows, f.Start+1, func(g workload.Flow, at time.Duration) int { return int(g.Start - at) })
	a.flows = slices.Insert(a.flows, i, f)
}

func (a *arrivals) pop() workload.Flow {
	f := a.flows[0]
	a.flows = a.flows[:copy(a.flows, a.flows[1:])]
	return f
}
