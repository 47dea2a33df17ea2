package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weft/bench/testbed"
	"weft/lab"
	"weft/topology"
)

var modes = map[string]lab.FailureMode{KindSeen: lab.FailLoud, KindSilent: lab.FailSilent}

// warmup is what TCP takes to find its rate.
const warmup = 2 * time.Second

// Run measures every combination of Kinds and Agents. On error it returns what
// is complete.
func Run(ctx context.Context, o Options) (results []Result, err error) {
	o.Complete()
	if err := o.Check(); err != nil {
		return nil, err
	}
	lab, err := buildLab(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	done, total := 0, len(o.Agents)*len(o.Kinds)*o.Repetitions
	for _, agents := range o.Agents {
		some, err := runAll(ctx, &o, lab, agents, func() {
			done++
			o.progress(done, total)
		})
		results = append(results, some...)
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// runAll measures all kinds of failures with the same hosts.
func runAll(ctx context.Context, o *Options, lab *lab.Lab, agents bool, step func()) (results []Result, err error) {
	to, err := permute(o.Topology, o.Seed)
	if err != nil {
		return nil, err
	}
	ideal := sum(Ideal(o.Topology, to, o.RateMbit))
	r, err := startRig(ctx, o, lab, agents, streamRate(o, to))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := sleep(ctx, warmup); err != nil {
		return nil, err
	}
	for _, kind := range o.Kinds {
		res := Result{
			Kind: kind, Agents: agents, Liveness: o.Liveness, IdealMbit: ideal, OfferedMbit: o.Load * ideal,
			Topology: o.Topology.String(), RateMbit: o.RateMbit, Seed: o.Seed, Machine: o.Machine,
		}
		if agents {
			res.HelloMs = milliseconds(o.Hello)
		}
		before := testbed.ReadCPU()
		for _, target := range targets(o.Topology, o.Repetitions, o.Seed) {
			rep, err := r.repeat(ctx, target, modes[kind])
			if err != nil {
				return results, fmt.Errorf("%s failure of %s, seed %d: %w", kind, target, o.Seed, err)
			}
			res.Samples = append(res.Samples, rep)
			if err := r.afresh(ctx, &res, rep, streamRate(o, to)); err != nil {
				return results, err
			}
			step()
		}
		res.summarise(before, testbed.ReadCPU(), r.pauses != nil)
		results = append(results, res)
	}
	return results, nil
}

// afresh starts the load again if a connection was lost, so that the next
// repetition measures what the others do.
func (r *rig) afresh(ctx context.Context, res *Result, rep Repetition, bytesPerSecond float64) error {
	n, why := r.streams.lostConnections()
	if n == 0 {
		return nil
	}
	if res.LostWhy == "" {
		res.LostWhy = why.Error()
	}
	r.options.note("%s failure of %s: %d connections were lost: %v", res.Kind, rep.Target, n, why)
	r.stopLoad()
	if err := r.startLoad(ctx, bytesPerSecond); err != nil {
		return err
	}
	return sleep(ctx, warmup)
}

// streamRate is what each stream asks for, in bytes per second; 0: as much as
// it gets.
func streamRate(o *Options, to []topology.NodeID) float64 {
	return o.Load * sum(Ideal(o.Topology, to, o.RateMbit)) * 1e6 / 8 / float64(len(to))
}
