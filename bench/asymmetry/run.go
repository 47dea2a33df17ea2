package asymmetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weft/bench/testbed"
)

// miceShare is the part of the ideal that mice ask for.
const miceShare = 0.1

// Run measures every policy in every scenario. On error it also returns the results so
// far.
func Run(ctx context.Context, o Options) ([]Result, error) {
	var results []Result
	for _, s := range o.Scenarios {
		some, err := o.runScenario(ctx, s)
		results = append(results, some...)
		if err != nil {
			return results, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return results, nil
}

func (o *Options) runScenario(ctx context.Context, s Scenario) (results []Result, err error) {
	c, err := o.config(s)
	if err != nil {
		return nil, err
	}
	bed := testbed.InMemory(c)
	if !o.Memory {
		bed, err = testbed.InNamespaces(ctx, o.Lab, c, func(done, total int) { o.progress("building the fabric", done, total) })
		if err != nil {
			return nil, err
		}
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	for _, row := range o.Rows {
		r, err := o.measure(ctx, s, c, bed, row)
		if err != nil {
			return results, fmt.Errorf("%s: %w", row.Name, err)
		}
		results = append(results, r)
	}
	return results, nil
}

func (o *Options) progress(what string, done, total int) {
	if o.Progress != nil {
		o.Progress(what, done, total)
	}
}

func (o *Options) measure(ctx context.Context, s Scenario, c testbed.Config, bed testbed.Testbed, row testbed.Row) (r Result, err error) {
	session, err := bed.Start(ctx, row)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	all := streams(c.Topology, o.Streams)
	r = Result{
		Topology: s.Name, Spec: c.Topology.String(), About: s.About, Fabric: bed.Kind(),
		Policy: row.Name, Encap: o.Carrier.String(), Metered: !o.Plain, Seed: o.Seed,
		Flows: len(all), IdealMbit: idealMbit(c.Topology, all, o.RateMbit),
	}
	every := float64(len(all)) * mouseBytes * 8 / (miceShare * r.IdealMbit * 1e6)
	l, err := startLoad(ctx, session.Hosts, all, time.Duration(every*float64(time.Second)), o.Seed)
	if err != nil {
		return r, err
	}
	stopped := false
	stop := func() {
		if !stopped {
			l.stop()
		}
		stopped = true
	}
	defer stop()

	what, total := s.Name+", "+row.Name, o.Warmup+o.Duration
	if err := o.wait(ctx, what, 0, o.Warmup, total); err != nil {
		return r, err
	}
	before, err := l.read(session)
	if err != nil {
		return r, err
	}
	l.timing.Store(true)
	if err := o.wait(ctx, what, o.Warmup, o.Duration, total); err != nil {
		return r, err
	}
	l.timing.Store(false)
	after, err := l.read(session)
	if err != nil {
		return r, err
	}
	r.between(before, after, c.Topology)
	r.Probing = probing(session, before, after, c.Topology, o)
	stop() // mice that are measured end
	r.mice(l)
	r.BrokenFlows = int(l.broken.Load())
	return r, nil
}

// wait lets time pass, of which so much of the total has passed.
func (o *Options) wait(ctx context.Context, what string, passed, d, total time.Duration) error {
	start := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for time.Since(start) < d {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			o.progress(what, int((passed + time.Since(start)).Milliseconds()), int(total.Milliseconds()))
		}
	}
	return nil
}
