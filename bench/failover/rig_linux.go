package failover

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"weft/bench/testbed"
	"weft/lab"
	"weft/stack"
	"weft/topology"
)

// rig is a lab under load: hosts with streams between them, taps at their
// uplinks and, where wanted, agents at the switches and listeners at the hosts.
type rig struct {
	options *Options
	lab     *lab.Lab
	to      []topology.NodeID
	session *testbed.Session
	control *control // nil without agents
	streams *streams
	series  *series
	uplinks []*tap          // what has left a host
	tracer  *tracer         // nil without Options.Trace
	pauses  *testbed.Pauses // nil if nobody can watch

	mu    sync.Mutex
	falls map[topology.LinkID]fall // since takeFalls
}

// buildLab builds a lab that goes with its Close.
func buildLab(ctx context.Context, o *Options) (*lab.Lab, error) {
	return lab.Hold(ctx, lab.Config{Name: o.Lab, Topology: o.Topology, RateMbit: o.RateMbit})
}

// startRig starts everything on a lab. bytesPerSecond is that of each stream, 0
// for as much as TCP gets.
func startRig(ctx context.Context, o *Options, lab *lab.Lab, agents bool, bytesPerSecond float64) (r *rig, err error) {
	r = &rig{options: o, lab: lab, falls: make(map[topology.LinkID]fall)}
	lab.Observe(r.fell)
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.to, err = permute(o.Topology, o.Seed); err != nil {
		return r, err
	}
	if err := r.startHosts(ctx, agents); err != nil {
		return r, err
	}
	if err := r.openTaps(); err != nil {
		return r, err
	}
	if p, err := testbed.WatchPauses(); err == nil { // else results say that nobody has
		r.pauses = p
	}
	return r, r.startLoad(ctx, bytesPerSecond)
}

// startHosts starts the hosts, and the switches' agents.
func (r *rig) startHosts(ctx context.Context, agents bool) (err error) {
	o := r.options
	rows, err := testbed.Select([]string{"drb"})
	if err != nil {
		return err
	}
	bed := testbed.OnLab(r.lab, testbed.Config{
		Topology: o.Topology, RateMbit: o.RateMbit, Seed: o.Seed, Resequencer: o.resequencer(),
		Adjust: func(_ topology.Node, c *stack.Config) {
			if o.Liveness {
				c.Liveness = &stack.Liveness{}
			}
		},
	})
	if r.session, err = bed.Start(ctx, rows[0]); err != nil {
		return err
	}
	if !agents {
		return nil
	}
	var trace func(traceEvent)
	if o.Trace != nil {
		if r.tracer, err = startTracer(r.lab); err != nil {
			return err
		}
		trace = r.tracer.add
	}
	if r.control, err = startControl(o, r.lab, r.session.Stacks, trace); err != nil {
		return err
	}
	return r.control.await(ctx)
}

func (r *rig) startLoad(ctx context.Context, bytesPerSecond float64) (err error) {
	if r.streams, err = startStreams(ctx, r.session.Hosts, r.to, bytesPerSecond); err != nil {
		return err
	}
	r.series = startSeries(sampleEvery, r.streams.count)
	return nil
}

func (r *rig) stopLoad() {
	if r.series != nil {
		r.series.stop()
		r.series = nil
	}
	if r.streams != nil {
		r.streams.stop()
		r.streams = nil
	}
}

// openTaps opens one at each host.
func (r *rig) openTaps() error {
	for n := range r.options.Topology.Hosts() {
		err := r.lab.Do(n.ID, func() error {
			t, err := openTap(testbed.Uplink)
			if err == nil {
				r.uplinks = append(r.uplinks, t)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}

// aim aims the taps.
func (r *rig) aim(bounces []netip.Addr) error {
	for _, t := range r.uplinks {
		if err := t.aim(bounces); err != nil {
			return err
		}
	}
	return nil
}

// drain gives f what the taps have seen since the last time.
func (r *rig) drain(f func(sighting)) error {
	for _, t := range r.uplinks {
		if err := t.drain(r.options.Topology, f); err != nil {
			return err
		}
	}
	return nil
}

// close stops everything but the lab.
func (r *rig) close() error {
	r.stopLoad()
	var errs []error
	for _, t := range r.uplinks {
		errs = append(errs, t.close())
	}
	if r.pauses != nil {
		r.pauses.Close()
	}
	if r.control != nil {
		errs = append(errs, r.control.close())
	}
	if r.tracer != nil {
		errs = append(errs, r.tracer.close())
	}
	if r.session != nil {
		errs = append(errs, r.session.Close())
	}
	return errors.Join(errs...)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// fell hears of every link that the lab changes.
func (r *rig) fell(link topology.LinkID, from, to time.Time) {
	r.mu.Lock()
	r.falls[link] = fall{from, to}
	r.mu.Unlock()
	if r.tracer != nil {
		r.tracer.add(traceEvent{At: from, Took: to.Sub(from), Node: "lab", What: traceDown, Of: r.options.Topology.LinkName(link)})
	}
}

// takeFalls returns when each link was changed last, since the last time.
func (r *rig) takeFalls() map[topology.LinkID]fall {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.falls
	r.falls = make(map[topology.LinkID]fall)
	return all
}
