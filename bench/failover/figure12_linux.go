package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weft/bench/testbed"
	"weft/lab"
)

// Figure12 takes the bouncing switches 3.0 and 3.1 away and brings them back, one every
// o.Outage, and measures the goodput. The load is a permutation without a limit (o.Load:
// 0). Failures are o.Kinds[0], with or without agents as o.Agents[0] says.
func Figure12(ctx context.Context, o Options) (d Degradation, err error) {
	o.Complete()
	if err := o.Check(); err != nil {
		return d, err
	}
	steps, err := figure12Steps(o.Topology)
	if err != nil {
		return d, err
	}
	lab, err := buildLab(ctx, &o)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	to, err := permute(o.Topology, o.Seed)
	if err != nil {
		return d, err
	}
	r, err := startRig(ctx, &o, lab, o.Agents[0], streamRate(&o, to))
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := sleep(ctx, warmup); err != nil {
		return d, err
	}
	d = Degradation{Topology: o.Topology.String(), RateMbit: o.RateMbit, Agents: o.Agents[0], Liveness: o.Liveness, Seed: o.Seed, Machine: o.Machine}
	return d, r.degrade(ctx, steps, &d)
}

// degrade plays the steps and fills in what came of them.
func (r *rig) degrade(ctx context.Context, steps []step, d *Degradation) error {
	o := r.options
	before := testbed.ReadCPU()
	zero := time.Now()
	for i, s := range steps {
		at, err := r.play(s, modes[o.Kinds[0]])
		if err != nil {
			return fmt.Errorf("%s: %w", s.event, err)
		}
		if err := sleep(ctx, o.Outage); err != nil {
			return err
		}
		d.Levels = append(d.Levels, Level{Event: s.event, FromS: at.Sub(zero).Seconds(), ToS: time.Since(zero).Seconds(),
			IdealMbit: s.ideal(o.Topology, r.to, o.RateMbit)})
		o.progress(i+1, len(steps))
	}
	var points []point
	for _, p := range r.series.points() {
		p.T -= zero.Sub(r.series.start)
		if p.T > 0 {
			points = append(points, p)
			d.Points = append(d.Points, PointJSON{p.T.Seconds(), p.Mbit})
		}
	}
	for i := range d.Levels {
		d.Levels[i].measure(points, &d.Levels[0])
	}
	d.IdlePercent = testbed.IdlePercent(before, testbed.ReadCPU())
	d.CPUBound = d.IdlePercent >= 0 && d.IdlePercent < testbed.CPUBound
	n, why := r.streams.lostConnections()
	if d.LostConnections = n; n > 0 {
		d.LostWhy = why.Error()
	}
	return nil
}

// play makes a step happen and returns when.
func (r *rig) play(s step, mode lab.FailureMode) (at time.Time, err error) {
	switch {
	case s.fail != "":
		return r.lab.Fail(s.fail, mode)
	case s.heal != "":
		return r.lab.Heal(s.heal)
	}
	return time.Now(), nil
}
