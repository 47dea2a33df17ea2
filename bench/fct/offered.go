package fct

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"weft/bench/sim/workload"
	"weft/topology"
)

// loadTolerance is by how large a part a File's load may differ from what its flows offer.
const loadTolerance = 0.1

// offered is the payload of a plan's flows in the time in which they begin, as a part of what
// hosts can send out of their racks. Flows of chains, in which one begins when another has ended,
// offer what the fabric carries, so they do not count; chains says that there are some.
func (p *plan) offered(t *topology.Topology, rateMbit float64, duration time.Duration) (load float64, chains bool) {
	followed := make([]bool, len(p.flows))
	for i := range p.flows {
		if after := p.follows(i); after >= 0 {
			followed[after], chains = true, true
		}
	}
	bytes := 0.0
	for i, f := range p.flows {
		if p.follows(i) < 0 && !followed[i] {
			bytes += float64(f.Bytes)
		}
	}
	return bytes * 8 / 1e6 / duration.Seconds() / workload.FabricMbitAt(t, rateMbit), chains
}

// checkLoad compares a File's load with what its flows offer.
func (f *File) checkLoad(t *topology.Topology, p *plan) error {
	load, chains := p.offered(t, f.RateMbit, time.Duration(f.DurationUs)*time.Microsecond)
	what := fmt.Sprintf("the flows offer %.4g of the %g Mbit/s that hosts can send out of their racks", load, workload.FabricMbitAt(t, f.RateMbit))
	switch off := load/f.Load - 1; {
	case !(load <= 1):
		return fmt.Errorf("load: %s in duration_us, more than all: make duration_us %.0f or more, or leave out flows", what, math.Ceil(float64(f.DurationUs)*load))
	case off > loadTolerance || off < -loadTolerance && !chains:
		return fmt.Errorf("load: %g: %s; write that, or change duration_us or the flows", f.Load, what)
	}
	return nil
}

// writtenLoad is the load for a File of a plan that was made for a load: what the flows offer,
// which differs as sizes are drawn, or the planned one if they are in chains.
func (o *Options) writtenLoad(planned float64, seed uint64, p *plan) (float64, error) {
	load, chains := p.offered(o.Topology, o.RateMbit, o.Duration)
	switch {
	case load > 1:
		return 0, fmt.Errorf("loads: %g: the flows of seed %d offer %.4g, as sizes are drawn: lengthen the duration, or take another seed or a smaller load", planned, seed, load)
	case chains:
		return planned, nil
	}
	return strconv.ParseFloat(strconv.FormatFloat(load, 'g', 4, 64), 64)
}
