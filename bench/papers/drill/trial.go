package drill

import (
	"context"
	"fmt"
	"slices"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/workload"
	"weft/bench/stats"
	"weft/topology"
)

// trial is one run with Poisson traffic.
type trial struct {
	top      *topology.Topology
	scheme   scheme
	load     float64
	arrivals time.Duration
	deep     bool // queues hold ten times as much
	// besides is merged into the traffic; nil: nothing.
	besides func(seed uint64) (workload.Source, error)
}

// flows is what came out of a trial.
type flows struct {
	us       []float64 // how long they took
	dupAcks  int       // flows with any duplicate ACK
	manyDups int       // and with more than 3
	result   *sim.Result
	cutOff   bool // flows were still under way at the end
}

func (f *flows) ended(e sim.FlowEnd) {
	f.us = append(f.us, float64(e.FCT.Nanoseconds())/1e3)
	if e.DupAcks > 0 {
		f.dupAcks++
	}
	if e.DupAcks > 3 {
		f.manyDups++
	}
}

// mean is in µs; so are the percentiles.
func (f *flows) mean() float64 {
	sum := 0.0
	for _, v := range f.us {
		sum += v
	}
	return sum / float64(max(1, len(f.us)))
}

func (f *flows) percentile(p float64) float64 { return stats.Percentile(f.us, p) }

// dupPercent is how many of a hundred flows had duplicate ACKs.
func (f *flows) dupPercent() float64 { return 100 * float64(f.dupAcks) / float64(max(1, len(f.us))) }

func (f *flows) manyDupPercent() float64 {
	return 100 * float64(f.manyDups) / float64(max(1, len(f.us)))
}

// wait is the mean time in µs that a packet waits in a kind of queue.
func (f *flows) wait(place int) float64 { return f.result.Places[place].Wait.Mean() / 1e3 }

// segment is TCP's, in bytes.
const segment = 1460

// patience is how long flows that are under way at the end of the arrivals are waited
// for.
const patience = 2 * time.Second

func (t trial) config(o papers.Options, on func(sim.FlowEnd)) (sim.Config, error) {
	c := network(o.Seed, t.top, t.scheme)
	if t.deep {
		c.Queues[0].Bytes = deep * frameBytes
	}
	c.Warmup = t.arrivals / warm
	c.Duration = t.arrivals + patience
	c.OnFlow = func(e sim.FlowEnd) {
		if e.Start >= c.Warmup {
			on(e)
		}
	}
	var err error
	c.Workload, err = between(t.top, trafficOf(o), t.load, t.arrivals, o.Seed)
	if o.As(wholeEnds) == wholeEnds {
		c.Workload = wholeSegments{c.Workload}
	}
	if err != nil || t.besides == nil {
		return c, err
	}
	more, err := t.besides(o.Seed)
	if err != nil {
		return c, err
	}
	c.Workload = workload.Merge(c.Workload, more)
	return c, nil
}

// play runs trials. Those of one topology and load have the same flows.
func play(ctx context.Context, o papers.Options, trials []trial) ([]*flows, error) {
	config := func(i int, f *flows) (sim.Config, error) { return trials[i].config(o, f.ended) }
	return papers.Play(ctx, o, len(trials), config, func(i int, f *flows, r *sim.Result, cutOff bool) error {
		f.result, f.cutOff = r, cutOff
		if len(f.us) == 0 {
			return fmt.Errorf("no flow of %s at load %v has ended", trials[i].scheme.name, trials[i].load)
		}
		return nil
	})
}

// grid is runs of schemes at loads.
type grid struct {
	loads   []float64
	schemes []scheme
	all     []*flows // by load, then scheme
}

func (g *grid) run(ctx context.Context, o papers.Options, t trial) (err error) {
	var trials []trial
	for _, load := range g.loads {
		for _, s := range g.schemes {
			t.load, t.scheme = load, s
			trials = append(trials, t)
		}
	}
	g.all, err = play(ctx, o, trials)
	return err
}

func (g *grid) at(load float64, s scheme) *flows {
	return g.all[slices.Index(g.loads, load)*len(g.schemes)+slices.Index(g.schemes, s)]
}

// top is the highest load.
func (g *grid) top() float64 { return g.loads[len(g.loads)-1] }

func (g *grid) hops() (n uint64) {
	for _, f := range g.all {
		n += f.result.PacketHops
	}
	return n
}

// curves are a figure over the loads.
func (g *grid) curves(title, y string, of func(*flows) float64) papers.Chart {
	c := papers.Chart{Title: title, X: "load", Y: y}
	for _, s := range g.schemes {
		l := papers.Line{Name: s.name, X: g.loads}
		for _, load := range g.loads {
			l.Y = append(l.Y, of(g.at(load, s)))
		}
		c.Lines = append(c.Lines, l)
	}
	return c
}

// means are rows of the schemes' mean and tail at a load, with nothing beside them.
func (g *grid) means(load float64, tail float64) (rows []papers.Row) {
	for _, s := range g.schemes {
		f := g.at(load, s)
		rows = append(rows,
			papers.Info(fmt.Sprintf("%s, load %v", s.name, load), "FCT mean, µs", f.mean()),
			papers.Info(fmt.Sprintf("%s, load %v", s.name, load), fmt.Sprintf("FCT p%v, µs", tail), f.percentile(tail)))
	}
	return rows
}

// counted says how many flows figures rest on.
func (g *grid) counted() papers.Parameter {
	least, cutOff := len(g.all[0].us), 0
	for _, f := range g.all {
		least = min(least, len(f.us))
		if f.cutOff {
			cutOff++
		}
	}
	return stated("flows counted", fmt.Sprintf("at least %d a run; %d of %d runs ended before all flows had", least, cutOff, len(g.all)))
}

// ratioTolerance is how far a quotient of two schemes may be from the paper's, in
// percent.
const ratioTolerance = papers.Stated

// below is by which factor a figure of ours is below another scheme's.
func (g *grid) below(load float64, ours, theirs scheme, metric string, of func(*flows) float64, paper float64) papers.Row {
	return papers.Ratio(fmt.Sprintf("%s by %s, load %v", theirs.name, ours.name, load), metric, paper,
		of(g.at(load, theirs)), of(g.at(load, ours)), ratioTolerance)
}

// fabric is a specification's, or a smaller one's. A Decision may replace the former.
func fabric(o papers.Options, full, quick string) (*topology.Topology, error) {
	if o.Quick {
		full = quick
	}
	return topology.Parse(o.As(full))
}

// took is the time of arrivals: less where a Decision has more leaves send, for as many flows, or has
// messages in place of flows, of which there are far more.
func took(o papers.Options, full, quick time.Duration) time.Duration {
	if o.Quick {
		return quick
	}
	if o.As(sizes) == messages {
		full /= 16
	}
	itself := everyLeaf[quarter]
	return full * time.Duration(min(everyLeaf[o.As(quarter)], itself)) / time.Duration(itself)
}

// because is why an experiment differs from the paper, which a quick run cannot tell.
func because(o papers.Options, why string) string {
	if o.Quick {
		return ""
	}
	return why
}

// durations are the Settings of a run.
func durations(arrivals time.Duration, g *grid, more ...papers.Parameter) []papers.Parameter {
	return append([]papers.Parameter{
		chosen("time", fmt.Sprintf("%v of arrivals a run", arrivals), "what a run may take"),
		g.counted(),
	}, more...)
}
