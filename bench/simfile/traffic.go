package simfile

import (
	"fmt"
	"math"
	"time"

	"weft/bench/sim/workload"
	"weft/topology"
)

// The matrices of a file.
const (
	uniform     = "uniform"
	otherRacks  = "other-racks"
	otherPods   = "other-pods"
	permutation = "permutation"
	stride      = "stride"
	staggered   = "staggered"
	allToAll    = "all-to-all"
	incast      = "incast"
	list        = "list"
)

var matrices = []string{uniform, otherRacks, otherPods, permutation, stride, staggered, allToAll, incast, list}

// The arrivals of a file.
const (
	poisson  = "poisson"
	together = "together"
)

// maxFlows bounds the flows of a run, maxAllFlows those of all, whose times are kept.
const (
	maxFlows    = 1 << 20
	maxAllFlows = 1 << 23
)

// plan is what a run of any policy has to do.
type plan struct {
	fabric  fabric
	traffic traffic
	sizes   *workload.CDF
	list    []workload.Flow
	length  time.Duration // in which flows begin
}

// expected is about how many flows begin under a load.
func (p *plan) expected(load float64) float64 {
	t, hosts := &p.traffic, float64(p.fabric.hosts())
	switch {
	case t.Matrix == list:
		return float64(len(p.list))
	case t.Matrix == incast:
		return float64(p.jobs(load)) * float64(t.Servers)
	case t.Arrivals == poisson:
		return p.perSecond(load) * p.length.Seconds()
	case t.Matrix == allToAll:
		return hosts * (hosts - 1)
	}
	return hosts * float64(t.Rounds) * float64(t.AtOnce)
}

// perSecond is the rate of flows, or of jobs of an incast, of all hosts together. A load is
// payload as a part of what hosts can send out of their racks.
func (p *plan) perSecond(load float64) float64 {
	return workload.FlowsPerSecond(load, p.fabric.mbit(), p.sizes)
}

// jobs is how many jobs of an incast there are.
func (p *plan) jobs(load float64) int {
	if p.traffic.Arrivals == together {
		return p.traffic.Jobs
	}
	return max(1, int(math.Round(min(p.perSecond(load)*p.length.Seconds(), maxFlows+1))))
}

// source makes the flows of a run, which depend on nothing else than the arguments.
func (p *plan) source(load float64, seed uint64) (workload.Source, error) {
	switch p.traffic.Matrix {
	case list:
		return &given{flows: p.list}, nil
	case incast:
		return p.incast(load, seed)
	}
	senders, to, err := p.destination(seed)
	if err != nil {
		return nil, err
	}
	if p.traffic.Arrivals == poisson {
		return workload.NewPoisson(workload.PoissonConfig{
			Senders: senders, To: to, Sizes: p.sizes, PerSecond: p.perSecond(load), Until: p.length, Flows: maxFlows, Seed: seed,
		})
	}
	rounds := p.traffic.Rounds
	if p.traffic.Matrix == allToAll {
		rounds = 0 // until everybody has been sent to
	}
	return workload.NewClosed(workload.ClosedConfig{
		Senders: senders, To: to, Sizes: p.sizes, AtOnce: p.traffic.AtOnce, Rounds: rounds, Spread: p.traffic.Spread, Seed: seed,
	})
}

func (p *plan) incast(load float64, seed uint64) (workload.Source, error) {
	c := workload.IncastConfig{
		Hosts: p.fabric.all(), Servers: p.traffic.Servers, Bytes: int64(p.sizes.Mean()), Jobs: p.jobs(load), Until: p.length, Seed: seed,
	}
	if p.traffic.Arrivals == together {
		c.Until, c.Together = 1, c.Jobs
	}
	return workload.NewIncast(c)
}

// destination says who sends, in which order, and to whom.
func (p *plan) destination(seed uint64) (senders []topology.NodeID, to workload.Destination, err error) {
	f, t := p.fabric, &p.traffic
	senders = f.all()
	var pairs []topology.NodeID
	switch t.Matrix {
	case uniform:
		return senders, f.anywhere(), nil
	case otherRacks:
		to, err = f.otherRack()
		return senders, to, err
	case otherPods:
		to, err = workload.Uniform(f.computed, workload.OtherPod)
		return senders, to, err
	case allToAll:
		if t.Arrivals == poisson {
			return senders, f.anywhere(), nil
		}
		to, err = workload.InTurnAmong(f.hosts(), seed)
		return senders, to, err
	case permutation:
		senders, pairs = workload.Cycle(f.hosts(), seed)
	case stride:
		pairs, err = workload.StrideAmong(f.hosts(), t.Stride)
	case staggered:
		pairs, err = workload.Staggered(f.computed, t.Rack, t.Pod, false, seed)
	default:
		err = fmt.Errorf("%q is no matrix", t.Matrix)
	}
	return senders, workload.To(pairs), err
}

// given are flows that begin in their time.
type given struct{ flows []workload.Flow }

// Next is workload.Source's.
func (g *given) Next() (f workload.Flow, ok bool) {
	if len(g.flows) == 0 {
		return f, false
	}
	f, g.flows = g.flows[0], g.flows[1:]
	return f, true
}

// Done is workload.Source's: nothing depends on it.
func (g *given) Done(workload.Flow, time.Duration, func(workload.Flow)) {}
