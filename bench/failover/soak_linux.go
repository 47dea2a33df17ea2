package failover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"weft/bench/testbed"
	"weft/internal/chaos"
	"weft/lab"
	"weft/topology"
)

const (
	// convergeLimit is how long databases may take to tell the truth after the
	// last event: damping holds a link that flapped back for 16 s.
	convergeLimit = 40 * time.Second
	convergePoll  = 20 * time.Millisecond
	restartPause  = 200 * time.Millisecond
)

// Soak sends transfers that are checked by their hashes. Meanwhile links and switches
// fail, heal and flap, and agents are restarted and killed, all by the seed. Then it lets
// a switch and a link fail for good, waits until all nodes know, heals them, and waits
// again.
func Soak(ctx context.Context, o SoakOptions) (res SoakResult, err error) {
	o.complete()
	if err := o.Check(); err != nil {
		return res, err
	}
	o.AgentProcess = nil // they are to be restarted
	events, err := chaos.Sequence(chaos.Config{Topology: o.Topology, Seed: o.Seed, Duration: o.Duration,
		Switches: chaos.DefaultSwitches, Silences: chaos.DefaultSilences, Flaps: chaos.DefaultFlaps})
	if err != nil {
		return res, err
	}
	lab, err := buildLab(ctx, &o.Options)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	r := &rig{options: &o.Options, lab: lab}
	defer func() { err = errors.Join(err, r.close()) }()
	if r.to, err = permute(o.Topology, o.Seed); err != nil {
		return res, err
	}
	if err := r.startHosts(ctx, o.Agents[0]); err != nil {
		return res, err
	}
	res = SoakResult{Topology: o.Topology.String(), RateMbit: o.RateMbit, Agents: o.Agents[0], Liveness: o.Liveness, Seed: o.Seed, Machine: o.Machine}
	return res, r.soak(ctx, &o, events, &res)
}

func (r *rig) soak(ctx context.Context, o *SoakOptions, events []chaos.Event, res *SoakResult) error {
	start, before := time.Now(), testbed.ReadCPU()
	sending, endSending := context.WithCancel(ctx)
	defer endSending()
	t, err := startTransfers(sending, r.session.Hosts, r.to, o.TransferBytes, o.Seed)
	if err != nil {
		return err
	}
	defer t.close()
	if err := r.rage(ctx, o, events, res); err != nil {
		return err
	}
	if err := r.converge(ctx, o, res); err != nil {
		return err
	}
	endSending()
	t.finish()
	res.Transfers, res.Bytes = int(t.done.Load()), t.bytes.Load()
	res.Corrupted, res.Stuck, res.Lost = int(t.corrupted.Load()), int(t.stuck.Load()), int(t.lost.Load())
	res.SlowestMs = milliseconds(time.Duration(t.slowest.Load()))
	if t.first != nil {
		res.Why = t.first.Error()
	}
	res.Seconds = time.Since(start).Seconds()
	res.IdlePercent = testbed.IdlePercent(before, testbed.ReadCPU())
	return nil
}

// rage plays the events, and restarts agents between them.
func (r *rig) rage(ctx context.Context, o *SoakOptions, events []chaos.Event, res *SoakResult) error {
	rng := rand.New(rand.NewPCG(o.Seed, 0x72657374))
	nextRestart := time.Duration(rng.ExpFloat64() * float64(o.Restart))
	start := time.Now()
	for _, e := range events {
		for r.control != nil && nextRestart < e.At {
			if err := sleep(ctx, nextRestart-time.Since(start)); err != nil {
				return err
			}
			kill := rng.IntN(2) == 0
			name, err := r.control.restart(rng.IntN(1<<20), kill, restartPause)
			if err != nil {
				return fmt.Errorf("restart the agent of %s: %w", name, err)
			}
			res.Restarts++
			o.event("%9.3f s  agent of %s started again, killed before: %v", time.Since(start).Seconds(), name, kill)
			nextRestart += time.Duration(rng.ExpFloat64() * float64(o.Restart))
		}
		if err := sleep(ctx, e.At-time.Since(start)); err != nil {
			return err
		}
		if err := r.apply(e); err != nil {
			return fmt.Errorf("%v: %w", e, err)
		}
		if e.Heals() {
			res.Heals++
		} else {
			res.Failures++
		}
		o.event("%v", e)
		o.progress(int(e.At.Milliseconds()), int(o.Duration.Milliseconds()))
	}
	if r.control == nil {
		return nil
	}
	return r.control.failed()
}

// labModes are a lab's names for what chaos calls failures.
var labModes = map[chaos.Mode]lab.FailureMode{
	chaos.Loud: lab.FailLoud, chaos.Silent: lab.FailSilent, chaos.SilentData: lab.FailSilentData,
}

func (r *rig) apply(e chaos.Event) (err error) {
	if e.Heals() {
		_, err = r.lab.Heal(e.Target)
	} else {
		_, err = r.lab.Fail(e.Target, labModes[e.Mode])
	}
	return err
}

// converge waits until everybody knows what is down: first a switch and a link
// of another, then nothing.
func (r *rig) converge(ctx context.Context, o *SoakOptions, res *SoakResult) error {
	if r.control == nil {
		return nil
	}
	// Everything may still be held back from what was before.
	if err := r.know(ctx, nil, res); err != nil || !res.Converged {
		return err
	}
	down := make(map[topology.LinkID]bool)
	targets := targets(o.Topology, 2, o.Seed)
	for i, target := range targets {
		if _, err := r.lab.Fail(target, []lab.FailureMode{lab.FailLoud, lab.FailSilent}[i]); err != nil {
			return err
		}
		links, err := linksOf(o.Topology, target)
		if err != nil {
			return err
		}
		for _, l := range links {
			down[l] = true
		}
	}
	if err := r.know(ctx, down, res); err != nil {
		return err
	}
	o.event("%v are down: known by all %v", targets, res.Converged)
	known := res.Converged
	if _, err := r.lab.Heal(targets...); err != nil {
		return err
	}
	if err := r.know(ctx, nil, res); err != nil {
		return err
	}
	res.Converged = res.Converged && known
	o.event("nothing is down: known by all %v", res.Converged)
	return nil
}

// know waits until everybody knows what is down.
func (r *rig) know(ctx context.Context, down map[topology.LinkID]bool, res *SoakResult) error {
	start := time.Now()
	for {
		wrong := r.control.wrong(down)
		took := time.Since(start)
		res.Converged = len(wrong) == 0
		if res.Converged {
			res.ConvergedMs = max(res.ConvergedMs, milliseconds(took))
			return nil
		}
		if took > convergeLimit {
			res.Wrong = append(res.Wrong, wrong[:min(len(wrong), 20)]...)
			return nil
		}
		if err := sleep(ctx, convergePoll); err != nil {
			return err
		}
	}
}

func (o *SoakOptions) event(format string, args ...any) {
	if o.Event != nil {
		o.Event(fmt.Sprintf(format, args...))
	}
}
