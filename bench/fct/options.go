package fct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"weft/bench/sim/workload"
	"weft/bench/testbed"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

// Options say what Run measures.
type Options struct {
	Topology *topology.Topology
	RateMbit float64 // of links for which Topology has no rate, Mbit/s, each direction
	Rows     []Row   // in the order of the results
	Workload string  // a distribution of workload.LoadCDF
	Scale    float64 // its sizes are multiplied by this
	Traffic  string  // as in TrafficHelp
	// JobBytes is the size of the traffic's jobs, before Scale: of a transfer of a shuffle, a
	// file of incast, a block of hdfs. 0: the paper's.
	JobBytes int64
	Failure  string // as in FailureHelp; "": none
	// Loads are the flows' payload as parts of what hosts can send out of their racks, above 0
	// and at most 1.
	Loads []float64
	Seed  uint64 // of the first round
	Seeds int    // rounds, each with the next seed
	// Flows begin during Duration. A run ends Drain later, or when all flows have finished.
	Duration, Drain time.Duration
	Machine         string // for the results
	// Hosts of weft choose paths and restore order so.
	Policy      policy.Options
	Resequencer resequencer.Config
	// File, if not nil, has the flows of every round. Use sets it.
	File *File
	// Open makes a fabric. Run closes it.
	Open func(context.Context, Fabric) (testbed.Testbed, error)
	// OnIdle, if not nil, is told what the idle fabric is like, for Simulate.
	OnIdle func(Idle)
	// Progress, if not nil, is called before each run with how many runs are done.
	Progress func(row string, done, total int)
	// Note, if not nil, is told what a reader of the results must know.
	Note func(string)
}

// Idle is what a fabric is like without load.
type Idle struct {
	Delay time.Duration // of a link and the node behind it
	lab   *alone        // what flows take in a lab; nil: none was measured
}

// Fabric is what distinguishes the fabrics that Open makes.
type Fabric struct {
	Balance string // the rule by which switches choose the next hop; "": the kernel's routes
	// MarkBytes is the queue from which switches mark packets, at a port of Options.RateMbit;
	// 0: they do not.
	MarkBytes int
	// Whole has nothing of Options.Failure. It is for what slowdowns divide by, and no row's.
	Whole bool
}

// Use takes the fabric and the flows of a File.
func (o *Options) Use(f *File) error {
	t, _, err := f.plan()
	if err != nil {
		return err
	}
	o.File, o.Topology, o.RateMbit, o.Workload, o.Traffic = f, t, f.RateMbit, f.Workload, f.Traffic
	o.Loads, o.Scale, o.Seed, o.Duration = []float64{f.Load}, f.Scale, f.Seed, time.Duration(f.DurationUs)*time.Microsecond
	return nil
}

// Check says what is wrong with the options, Open aside, in the words of the command's flags.
// A shuffle has one load.
func (o *Options) Check() error {
	switch {
	case o.Topology == nil:
		return errors.New("topology: none is given")
	case len(o.Rows) == 0:
		return errors.New("rows: none is named")
	case !(o.Scale > 0 && o.Scale <= maxScale):
		return fmt.Errorf("scale %g: must be above 0, at most %d", o.Scale, maxScale)
	case len(o.Loads) == 0:
		return errors.New("loads: none is named")
	case o.Seeds < 1 || o.Seeds > 1000:
		return fmt.Errorf("seeds %d: must be from 1 to 1000", o.Seeds)
	case o.Duration <= 0 || o.Drain <= 0:
		return fmt.Errorf("duration %v and drain %v: must be above 0", o.Duration, o.Drain)
	case o.Duration > maxDuration || o.Drain > maxDuration:
		return fmt.Errorf("duration %v and drain %v: must be at most %v", o.Duration, o.Drain, maxDuration)
	}
	if _, err := parseFailure(o.Failure, o.Topology); err != nil {
		return err
	}
	if o.File != nil {
		return nil
	}
	a, err := o.arrivals()
	if err != nil {
		return err
	}
	if a.traffic.kind == shuffle {
		o.Loads = []float64{1}
	}
	return o.checkLoads(a)
}

// checkLoads also makes flows of the first load, which finds what the topology is too small for.
func (o *Options) checkLoads(a *arrivals) error {
	for _, load := range o.Loads {
		if !(load > 0 && load <= 1) {
			return fmt.Errorf("loads: %g: must be above 0, at most 1", load)
		}
		switch n, begun := a.expected(load); {
		case n > maxFlows/2:
			return fmt.Errorf("load %g makes about %.0f flows in %v, %d are the most: shorten the duration or raise the scale", load, n, o.Duration, maxFlows/2)
		case begun < 1:
			return fmt.Errorf("load %g makes less than one flow in %v: lengthen the duration or lower the scale", load, o.Duration)
		}
	}
	if _, err := a.plan(o.Loads[0], o.Seed); err != nil {
		return fmt.Errorf("traffic %q: %w; choose parameters that fit the topology, or another one", a.traffic.name, err)
	}
	return nil
}

// arrivals are what flows are made of without a File.
func (o *Options) arrivals() (*arrivals, error) {
	t, err := parseTraffic(o.Traffic)
	if err != nil {
		return nil, err
	}
	o.Traffic = t.name
	a := &arrivals{topology: o.Topology, rateMbit: o.RateMbit, traffic: t, duration: o.Duration}
	switch most := int64(maxFlowBytes / maxScale); {
	case t.jobBytes() == 0 && o.JobBytes != 0:
		return nil, fmt.Errorf("job-bytes %d: flows of traffic %s have the workload's sizes: leave it out", o.JobBytes, t.name)
	case o.JobBytes < 0 || o.JobBytes > most:
		return nil, fmt.Errorf("job-bytes %d: must be from 1 to %d, or 0 for the paper's", o.JobBytes, most)
	}
	a.jobBytes = max(1, int64(float64(cmp.Or(o.JobBytes, t.jobBytes()))*o.Scale))
	cdf, err := workload.LoadCDF(o.Workload)
	if err != nil {
		return nil, err
	}
	a.sizes = cdf.Scale(o.Scale)
	return a, nil
}

// plan returns the flows of a run.
func (o *Options) plan(load float64, seed uint64) (p plan, err error) {
	if o.File != nil {
		_, p, err = o.File.plan()
		return p, err
	}
	a, err := o.arrivals()
	if err != nil {
		return p, err
	}
	return a.plan(load, seed)
}

// WorkloadName says whose sizes flows have.
func (o *Options) WorkloadName() string {
	if o.File == nil {
		if t, err := parseTraffic(o.Traffic); err == nil && t.jobBytes() > 0 {
			return fmt.Sprintf("fixed(%d)", cmp.Or(o.JobBytes, t.jobBytes()))
		}
	}
	return o.Workload
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
