package drill

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/workload"
	"weft/topology"
)

// Every value of every decision gives runs something else: another fabric, other flows or
// another configuration. A name that no run asks for does not.
func TestDecisions_changeRuns(t *testing.T) {
	top := parse(t, scaledUp)
	itself := flowsOf(t, top, papers.Options{Seed: 1})
	for _, e := range Experiments() {
		for _, d := range e.Decisions {
			for _, v := range d.Values {
				if !changes(t, top, itself, v) {
					t.Errorf("%s, %s: %s changes nothing", e.Name, d.Parameter, v.Name)
				}
			}
		}
	}
	if changes(t, top, itself, as("nobody asks for this", anyToAny)) {
		t.Error("a name that nobody asks for changes something")
	}
}

func changes(t *testing.T, top *topology.Topology, itself []workload.Flow, v papers.DecisionValue) bool {
	t.Helper()
	o := papers.Options{Seed: 1, Variant: &papers.Variant{Name: v.Name, Replace: v.Replace, Tune: v.Tune}}
	if v.Tune != nil {
		c := network(1, top, drill)
		before := fmt.Sprintf("%+v", c)
		if v.Tune(&c); fmt.Sprintf("%+v", c) != before {
			return true
		}
	}
	if o.As(drill.policy) != drill.policy { // as of mutants
		return true
	}
	for _, spec := range []string{large, scaledUp, scaled, even, uneven, vl2, slow} {
		other, err := fabric(o, spec, "")
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		if other.String() != parse(t, spec).String() {
			return true
		}
	}
	return !slices.Equal(flowsOf(t, top, o), itself)
}

// flowsOf are the flows of a trial and those of incast.
func flowsOf(t *testing.T, top *topology.Topology, o papers.Options) (list []workload.Flow) {
	t.Helper()
	c, err := trial{top: top, scheme: drill, load: .5, arrivals: time.Millisecond}.config(o, func(sim.FlowEnd) {})
	if err != nil {
		t.Fatal(err)
	}
	incast, err := asked(o, top, 40*time.Millisecond)(o.Seed)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []workload.Source{c.Workload, incast} {
		for f, ok := s.Next(); ok; f, ok = s.Next() {
			list = append(list, f)
		}
	}
	return list
}
