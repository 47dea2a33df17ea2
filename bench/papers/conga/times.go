package conga

import (
	"context"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/workload"
	"weft/topology"
)

// completion sums up the flow completion times of a run: of all flows, of small
// ones, of large ones. Flows that have not ended count as if they did at the end.
type completion struct {
	all, small, large sum
	ideal             float64 // seconds that all flows take in an idle network
	bytes             float64 // of all flows
}

// sum is of flows, in seconds.
type sum struct {
	begun, ended int
	starts       float64 // of flows under way
	took         float64 // by flows that have ended
}

// mean is 0 of no flows.
func (s sum) mean(end time.Duration) float64 {
	underWay := float64(s.begun-s.ended)*end.Seconds() - s.starts
	return (s.took + underWay) / float64(max(s.begun, 1))
}

func (c *completion) began(f workload.Flow, ideal time.Duration) {
	c.ideal += ideal.Seconds()
	c.bytes += float64(f.Bytes)
	for _, s := range c.of(f.Bytes) {
		s.begun++
		s.starts += f.Start.Seconds()
	}
}

func (c *completion) ended(f sim.FlowEnd) {
	for _, s := range c.of(f.Bytes) {
		s.ended++
		s.starts -= f.Start.Seconds()
		s.took += f.FCT.Seconds()
	}
}

// of returns the sums that a flow counts for.
func (c *completion) of(bytes int64) []*sum {
	switch {
	case bytes < smallBytes:
		return []*sum{&c.all, &c.small}
	case bytes > largeBytes:
		return []*sum{&c.all, &c.large}
	}
	return []*sum{&c.all}
}

// watched is a Source that says which flows have begun.
type watched struct {
	workload.Source
	began func(workload.Flow)
}

func (w watched) Next() (workload.Flow, bool) {
	f, ok := w.Source.Next()
	if ok {
		w.began(f)
	}
	return f, ok
}

// ideal is how long a flow takes alone: four links of delay, each packet at the pace
// of the host's link, the last one stored and forwarded once more at the leaf. The
// fabric's links are at least as fast, and count as no time.
func ideal(bytes int64, hostMbit float64) time.Duration {
	const mss, header = 1460, 40
	packets := (bytes + mss - 1) / mss
	last := bytes - (packets-1)*mss + header
	bits := float64(bytes+packets*header+last) * 8
	return 4*linkDelay + time.Duration(bits/hostMbit*1e3)
}

// outcome is what came of a run.
type outcome struct {
	run
	completion
	*sim.Result
}

// watch adds to a run's Config what an experiment samples.
type watch func(i int, c *sim.Config)

// play runs simulations and collects completion times. sample may be nil.
func play(ctx context.Context, o papers.Options, runs []run, sample watch) ([]*outcome, error) {
	all, configs := make([]*outcome, len(runs)), make([]sim.Config, len(runs))
	for i, r := range runs {
		c, err := r.config(o.Seed)
		if err != nil {
			return nil, err
		}
		out := &outcome{run: r}
		hostMbit := r.Rate(r.Ports(0)[0].Link)
		c.Workload = watched{c.Workload, func(f workload.Flow) {
			if f.Start >= r.warmup {
				out.began(f, ideal(f.Bytes, hostMbit))
			}
		}}
		c.OnFlow = func(f sim.FlowEnd) {
			if f.Start >= r.warmup {
				out.ended(f)
			}
		}
		if sample != nil {
			sample(i, &c)
		}
		all[i], configs[i] = out, c
	}
	results, err := papers.Sweep(ctx, o, configs)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		all[i].Result = r
	}
	return all, nil
}

// fct is the mean flow completion time of a bin in seconds.
func (o *outcome) fct(bin bin) float64 { return bin.of(&o.completion).mean(o.End) }

// flows is how many of a bin have begun.
func (o *outcome) flows(bin bin) int { return bin.of(&o.completion).begun }

// normalized is the mean by the mean in an idle network.
func (o *outcome) normalized() float64 {
	return o.fct(all) * float64(o.completion.all.begun) / o.completion.ideal
}

// underWay is the percentage of flows that had not ended at the end.
func (o *outcome) underWay() float64 {
	flows := o.completion.all
	return 100 * float64(flows.begun-flows.ended) / float64(max(flows.begun, 1))
}

// offered is the load of the flows that are counted, which differs from the run's as
// few large flows make much of it.
func (o *outcome) offered() float64 {
	return o.bytes * 8 / 1e6 / (o.arrivals - o.warmup).Seconds() / workload.FabricMbit(o.Whole())
}

// bin is of flow sizes.
type bin struct {
	name string
	of   func(*completion) *sum
}

var (
	all    = bin{"all flows", func(c *completion) *sum { return &c.all }}
	little = bin{"small flows", func(c *completion) *sum { return &c.small }}
	big    = bin{"large flows", func(c *completion) *sum { return &c.large }}
)

func hops(all []*outcome) (n uint64) {
	for _, o := range all {
		n += o.PacketHops
	}
	return n
}

// find returns the run of a policy, a traffic and a load.
func find(all []*outcome, policy string, t traffic, load float64) *outcome {
	for _, o := range all {
		if o.policy == policy && o.traffic == t && o.load == load {
			return o
		}
	}
	panic("conga: no run of " + policy)
}

// uplinks returns the ports, as sim.View numbers them, by which a leaf sends up.
func uplinks(t *topology.Topology, leaf topology.NodeID) (ports []int) {
	for _, p := range t.Ports(leaf) {
		if p.Up {
			ports = append(ports, 2*int(p.Link))
		}
	}
	return ports
}
