package fct

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"weft/bench/sim/workload"
	"weft/topology"
)

// maxFlows bounds the flows of a run.
const maxFlows = 100_000

// arrivals are the flows of a run. They depend on nothing but the arguments, so they are the
// same for all rows.
type arrivals struct {
	topology *topology.Topology
	rateMbit float64 // of links for which the topology has no rate
	sizes    *workload.CDF
	traffic  traffic
	jobBytes int64 // of a job: a transfer of a shuffle, a file of incast, a block
	duration time.Duration
}

// perSecond is the rate of flows, or of jobs, of all hosts together that makes a load. A load
// is the flows' payload as a part of what hosts can send out of their racks
// (workload.FabricMbit).
func (a *arrivals) perSecond(load float64) float64 {
	sizes := a.sizes
	switch a.traffic.kind {
	case incast:
		sizes = workload.Fixed(a.jobBytes)
	case hdfs:
		sizes = workload.Fixed(a.jobBytes * remoteReplicas)
	}
	return workload.FlowsPerSecond(load, workload.FabricMbitAt(a.topology, a.rateMbit), sizes)
}

// expected is about how many flows a load makes, and how many jobs or flows without a job.
func (a *arrivals) expected(load float64) (flows, begun float64) {
	begun = a.perSecond(load) * a.duration.Seconds()
	switch a.traffic.kind {
	case shuffle:
		n := float64(a.topology.NumHosts())
		return n * (n - 1), n
	case incast:
		return begun * a.traffic.args[0], begun
	case hdfs:
		return begun * remoteReplicas, begun
	}
	return begun, begun
}

// plan returns the flows of a load.
func (a *arrivals) plan(load float64, seed uint64) (p plan, err error) {
	switch a.traffic.kind {
	case shuffle:
		return a.shuffle(seed)
	case incast:
		return a.incast(load, seed)
	case hdfs:
		return a.pipelines(load, seed)
	}
	p.flows, err = a.flows(load, seed)
	return p, err
}

// flows returns the flows of a load in the order of their beginning.
func (a *arrivals) flows(load float64, seed uint64) ([]workload.Flow, error) {
	to, err := a.traffic.destination(a.topology, seed)
	if err != nil {
		return nil, err
	}
	return a.poisson(to, a.sizes, load, seed)
}

func (a *arrivals) poisson(to workload.Destination, sizes *workload.CDF, load float64, seed uint64) ([]workload.Flow, error) {
	p, err := workload.NewPoisson(workload.PoissonConfig{
		Senders: workload.Hosts(a.topology), To: to, Sizes: sizes,
		PerSecond: a.perSecond(load), Until: a.duration, Flows: maxFlows, Seed: seed,
	})
	if err != nil {
		return nil, err
	}
	return all(p), nil
}

// all takes the flows that begin by themselves.
func all(s workload.Source) (list []workload.Flow) {
	for f, ok := s.Next(); ok; f, ok = s.Next() {
		list = append(list, f)
	}
	return list
}

// shuffle is one job for each host, whose flows follow each other.
func (a *arrivals) shuffle(seed uint64) (p plan, err error) {
	to, err := workload.InTurn(a.topology, seed)
	if err != nil {
		return p, err
	}
	p.jobs = a.topology.NumHosts()
	for h := range topology.NodeID(p.jobs) {
		before := -1
		for dst := to(h, nil); dst >= 0; dst = to(h, nil) {
			p.add(workload.Flow{Src: h, Dst: dst, Bytes: a.jobBytes, Job: uint32(h)}, before)
			before = len(p.flows) - 1
		}
	}
	return p, nil
}

// incast has as many jobs as make the load, one at least, each at a random time.
func (a *arrivals) incast(load float64, seed uint64) (p plan, err error) {
	p.jobs = max(1, int(math.Round(a.perSecond(load)*a.duration.Seconds())))
	s, err := workload.NewIncast(workload.IncastConfig{
		Hosts: workload.Hosts(a.topology), Servers: int(a.traffic.args[0]), Bytes: a.jobBytes,
		Jobs: p.jobs, Until: a.duration, Seed: seed,
	})
	if err != nil {
		return p, err
	}
	p.flows = all(s)
	return p, nil
}

// remoteReplicas are those of a block that cross the network: the first of three is at the
// writer.
const remoteReplicas = 2

// pipelines are blocks that hosts write at the times of a Poisson process. The second replica
// is at a random host of another rack, the third at a random other one. A pipeline passes on
// what arrives, packet by packet, so both flows of a block begin together.
func (a *arrivals) pipelines(load float64, seed uint64) (p plan, err error) {
	second, err := workload.Uniform(a.topology, workload.OtherRack)
	if err != nil {
		return p, err
	}
	third, err := workload.Uniform(a.topology, workload.Anywhere)
	if err != nil {
		return p, err
	}
	if a.topology.NumHosts() < remoteReplicas+1 {
		return p, fmt.Errorf("traffic %s: %s has %d hosts, and a block is at three", hdfs, a.topology, a.topology.NumHosts())
	}
	blocks, err := a.poisson(second, workload.Fixed(a.jobBytes), load, seed)
	if err != nil {
		return p, err
	}
	r := rand.New(rand.NewPCG(seed, 0x68646673))
	for _, b := range blocks {
		b.Job = uint32(p.jobs)
		p.jobs++
		on := b
		on.Src = b.Dst
		for on.Dst = third(on.Src, r); on.Dst == b.Src; on.Dst = third(on.Src, r) {
		}
		p.flows = append(p.flows, b, on)
	}
	return p, nil
}
