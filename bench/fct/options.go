package fct

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weft/bench/sim/workload"
	"weft/bench/testbed"
	"weft/topology"
)

// Options say what Run measures.
type Options struct {
	Topology *topology.Topology
	RateMbit float64 // of links for which Topology has no rate, Mbit/s, each direction
	Rows     []Row   // in the order of the results
	Workload string  // a distribution of workload.LoadCDF
	Scale    float64 // its sizes are multiplied by this
	Traffic  string  // one of Traffics
	// Loads are the flows' payload as parts of what hosts can send out of their racks, above 0
	// and at most 1.
	Loads []float64
	Seed  uint64 // of the first round
	Seeds int    // rounds, each with the next seed
	// Flows begin during Duration. A run ends Drain later, or when all flows have finished.
	Duration, Drain time.Duration
	Machine         string // for the results
	// Open makes the fabric whose switches balance by a rule; "": by the kernel's routes. Run
	// closes it.
	Open func(ctx context.Context, balance string) (testbed.Testbed, error)
	// Progress, if not nil, is called before each run with how many runs are done.
	Progress func(row string, done, total int)
	// Note, if not nil, is told what a reader of the results must know.
	Note func(string)
}

// Check says what is wrong with the options, Open aside, in the words of the command's flags.
func (o *Options) Check() error {
	_, err := o.sizes()
	return err
}

// sizes checks the options and returns the distribution of the flows' sizes.
func (o *Options) sizes() (*workload.CDF, error) {
	switch {
	case o.Topology == nil:
		return nil, errors.New("topology: none is given")
	case len(o.Rows) == 0:
		return nil, errors.New("rows: none is named")
	case !(o.Scale > 0 && o.Scale <= 1000):
		return nil, fmt.Errorf("scale %g: must be above 0, at most 1000", o.Scale)
	case len(o.Loads) == 0:
		return nil, errors.New("loads: none is named")
	case o.Seeds < 1 || o.Seeds > 1000:
		return nil, fmt.Errorf("seeds %d: must be from 1 to 1000", o.Seeds)
	case o.Duration <= 0 || o.Drain <= 0:
		return nil, fmt.Errorf("duration %v and drain %v: must be above 0", o.Duration, o.Drain)
	}
	if err := checkTraffic(o.Traffic); err != nil {
		return nil, err
	}
	cdf, err := workload.LoadCDF(o.Workload)
	if err != nil {
		return nil, err
	}
	sizes := cdf.Scale(o.Scale)
	a := arrivals{o.Topology, o.RateMbit, sizes, o.Traffic, o.Duration}
	if _, err := a.destination(o.Seed); err != nil {
		return nil, err
	}
	for _, load := range o.Loads {
		if !(load > 0 && load <= 1) {
			return nil, fmt.Errorf("loads: %g: must be above 0, at most 1", load)
		}
		switch n := a.perSecond(load) * o.Duration.Seconds(); {
		case n > maxFlows/2:
			return nil, fmt.Errorf("load %g makes about %.0f flows in %v, %d are the most: shorten the duration or raise the scale", load, n, o.Duration, maxFlows/2)
		case n < 1:
			return nil, fmt.Errorf("load %g makes less than one flow in %v: lengthen the duration or lower the scale", load, o.Duration)
		}
	}
	return sizes, nil
}

func (o *Options) note(format string, args ...any) {
	if o.Note != nil {
		o.Note(fmt.Sprintf(format, args...))
	}
}

func (b *bench) progress(row string) {
	if b.Progress != nil {
		b.Progress(row, b.done, len(b.Rows)*len(b.Loads)*b.Seeds)
	}
}
