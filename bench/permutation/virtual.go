package permutation

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"weft/bench/testbed"
	"weft/internal/simnet"
	"weft/internal/simnet/world"
	"weft/stack"
	"weft/topology"
)

// scatter is the time over which streams and requests start in virtual time. Without it all
// hosts would do the same thing at the same nanosecond.
const scatter = requestEvery

// virtualSlice is how much virtual time passes between two looks at the context.
const virtualSlice = 20 * time.Millisecond

// RunVirtual does what Run does with weft hosts in virtual time, on a fabric in memory. The
// hosts, their TCP included, are the real ones; links and switches are models. The result
// depends on the arguments alone, not on the machine or its load. The row must be weft's
// own, see testbed.Row.Kernel.
func RunVirtual(ctx context.Context, c testbed.Config, row testbed.Row, to []topology.NodeID, load Load) (Result, error) {
	return RunVirtualStreams(ctx, c, row, Streams(to), load)
}

// RunVirtualStreams does what RunStreams does, as RunVirtual.
func RunVirtualStreams(ctx context.Context, c testbed.Config, row testbed.Row, streams []Stream, load Load) (Result, error) {
	links := c.Links()
	links.HostQueueBytes = simnet.DefaultQueueBytes // as in the lab: hosts have the queues of switches
	w := world.New(world.Config{
		Fabric: c.Topology, Links: links, Seed: c.Seed,
		Hosts: func(name string, sc *stack.Config) {
			n, _ := c.Topology.Lookup(name) // the World has it from there
			c.Configure(row, n, sc)
		},
	})
	defer w.Close()
	r := newVirtual(w, c.Topology, streams, c.Seed)
	total := load.Warmup + load.Duration
	if err := r.until(ctx, load.Warmup, total, load); err != nil {
		return Result{}, err
	}
	before := r.measure()
	if err := r.until(ctx, total, total, load); err != nil {
		return Result{}, err
	}
	return r.result(before, load.Duration), nil
}

// virtual is a run in virtual time.
type virtual struct {
	world    *world.World
	topology *topology.Topology
	hosts    []*stack.Host
	bulk     []*world.Flow  // by stream
	requests []*world.Trips // by stream
}

func newVirtual(w *world.World, t *topology.Topology, streams []Stream, seed uint64) *virtual {
	r := &virtual{world: w, topology: t}
	for n := range t.Hosts() {
		if h := w.Host(n.Name); h != nil { // else Run says why
			r.hosts = append(r.hosts, h)
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0x73636174746572))
	start := func() time.Duration { return time.Duration(rng.Int64N(int64(scatter))) }
	for _, s := range streams {
		sender, receiver := t.Node(s.From).Name, t.Node(s.To).Name
		r.bulk = append(r.bulk, w.FlowAt(start(), sender, receiver, world.Endless))
		trips := w.RoundTripsAt(start(), sender, receiver, math.MaxInt, requestBytes, 0)
		trips.Every = requestEvery
		r.requests = append(r.requests, trips)
	}
	return r
}

// until lets time pass until end, or until ctx ends.
func (r *virtual) until(ctx context.Context, end, total time.Duration, load Load) error {
	for now := r.world.Now(); now < end; now = r.world.Now() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.world.RunUntil(min(now+virtualSlice, end)); err != nil {
			return err
		}
		load.report(r.world.Now(), total)
	}
	return nil
}

// virtualReading is everything that is counted, at one moment.
type virtualReading struct {
	received []int64 // by stream
	answered []int   // requests, by stream
	counters testbed.Counters
}

func (r *virtual) measure() (m virtualReading) {
	m.counters = testbed.Count(r.hosts)
	m.counters.Links = testbed.CountLinks(r.world.Network(), r.topology)
	for i, f := range r.bulk {
		m.received = append(m.received, f.Received)
		m.answered = append(m.answered, len(r.requests[i].Times))
	}
	return m
}

func (r *virtual) result(before virtualReading, elapsed time.Duration) Result {
	after := r.measure()
	res := Result{Elapsed: elapsed, Counters: after.counters, IdlePercent: -1}
	subtract(&res.Counters, before.counters, elapsed)
	for i := range r.bulk {
		res.Mbit = append(res.Mbit, float64(after.received[i]-before.received[i])*8/elapsed.Seconds()/1e6)
		// The first request that is answered may have been made before.
		for _, d := range r.requests[i].Times[min(before.answered[i]+1, after.answered[i]):] {
			res.RTTMicros = append(res.RTTMicros, float64(d.Nanoseconds())/1e3)
		}
	}
	return res
}
