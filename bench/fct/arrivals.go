package fct

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weft/bench/permutation"
	"weft/bench/sim/workload"
	"weft/topology"
)

// Traffics are whom hosts send to: each flow to a random host of another rack (DRILL §4), or
// all of a host's flows to one host as far away as can be, and each host receives from one.
var Traffics = []string{"random", "permutation"}

// maxFlows bounds the flows of a run.
const maxFlows = 100_000

// arrivals are the flows of a run. They depend on nothing but the arguments, so they are the
// same for all rows.
type arrivals struct {
	topology *topology.Topology
	rateMbit float64 // of links for which the topology has no rate
	sizes    *workload.CDF
	traffic  string
	duration time.Duration
}

// perSecond is the rate of flows of all hosts together that makes a load. A load is the flows'
// payload as a part of what hosts can send out of their racks (workload.FabricMbit).
func (a *arrivals) perSecond(load float64) float64 {
	return workload.FlowsPerSecond(load, workload.FabricMbitAt(a.topology, a.rateMbit), a.sizes)
}

// flows returns the flows of a load in the order of their beginning.
func (a *arrivals) flows(load float64, seed uint64) ([]workload.Flow, error) {
	to, err := a.destination(seed)
	if err != nil {
		return nil, err
	}
	p, err := workload.NewPoisson(workload.PoissonConfig{
		Senders: workload.Hosts(a.topology), To: to, Sizes: a.sizes,
		PerSecond: a.perSecond(load), Until: a.duration, Flows: maxFlows, Seed: seed,
	})
	if err != nil {
		return nil, err
	}
	var all []workload.Flow
	for f, ok := p.Next(); ok; f, ok = p.Next() {
		all = append(all, f)
	}
	return all, nil
}

func (a *arrivals) destination(seed uint64) (workload.Destination, error) {
	random, err := workload.Uniform(a.topology, workload.OtherRack)
	if err == nil && a.traffic == "permutation" {
		return workload.To(permutation.Random(a.topology, seed)), nil
	}
	return random, err
}

func checkTraffic(name string) error {
	if !slices.Contains(Traffics, name) {
		return fmt.Errorf("traffic %q: unknown; known: %s", name, strings.Join(Traffics, ", "))
	}
	return nil
}
