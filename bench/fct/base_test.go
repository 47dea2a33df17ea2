package fct

import (
	"maps"
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/topology"
)

// One of a size's flows takes a fastest path, though ECMP chooses.
func TestFlowsOfSize_byHand(t *testing.T) {
	const slow = ",host-rate=10,fabric-rate=10,e0.0-a0.0=2.5"
	for spec, want := range map[string]int{
		"fat-tree:k=4": sizeFlows,
		"leaf-spine:leaves=2,spines=4,hosts=1,host-rate=10,fabric-rate=10":         sizeFlows,
		"leaf-spine:leaves=2,spines=4,hosts=1" + slow:                              5,  // (1/4)^5 < 0.001
		"leaf-spine:leaves=2,spines=2,hosts=1" + slow:                              10, // (1/2)^10 < 0.001
		"leaf-spine:leaves=2,spines=4,hosts=1" + slow + ",e0.0-a0.1=3,e0.0-a0.2=4": 25, // (3/4)^25 < 0.001
		"leaf-spine:leaves=2,spines=1,hosts=1" + slow:                              sizeFlows,
	} {
		top := parse(t, spec)
		if got := flowsOfSize(top, 0, topology.NodeID(top.NumHosts()-1)); got != want {
			t.Errorf("%s: %d flows, want %d", spec, got, want)
		}
	}
}

func TestDistances_lastHostOfEach(t *testing.T) {
	for spec, want := range map[string]map[int]topology.NodeID{
		"fat-tree:k=4":                         {2: 1, 4: 3, 6: 15},
		"leaf-spine:leaves=2,spines=2,hosts=2": {2: 1, 4: 3},
		"leaf-spine:leaves=3,spines=2,hosts=1": {4: 2},
	} {
		if got := distances(parse(t, spec)); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", spec, got, want)
		}
	}
}

// One byte goes to hosts of each distance, and all sizes to the farthest.
func TestBasePlan_reachesEachDistance(t *testing.T) {
	p := basePlan(parse(t, "fat-tree:k=4"), 10)
	count := make(map[workload.Flow]int)
	for i, f := range p.flows {
		if count[f]++; p.follows(i) != i-1 {
			t.Errorf("flow %d follows %d", i, p.follows(i))
		}
	}
	want := make(map[workload.Flow]int)
	for _, h := range []topology.NodeID{1, 3, 15} {
		want[workload.Flow{Dst: h, Bytes: 1}] = byteFlows
	}
	for _, bytes := range aloneSizes(10)[1:] {
		want[workload.Flow{Dst: 15, Bytes: bytes}] = sizeFlows
	}
	if !maps.Equal(count, want) || p.apart != pauseAlone {
		t.Errorf("%v, want %v", count, want)
	}
}

// The base has what finished in any of its tries.
func TestLeastTimes_ofAllTries(t *testing.T) {
	const ms = time.Millisecond
	top := parse(t, "leaf-spine:leaves=2,spines=2,hosts=2")
	p := plan{flows: []workload.Flow{{Dst: 1, Bytes: 1}, {Dst: 3, Bytes: 1}, {Dst: 3, Bytes: 1}, {Dst: 3, Bytes: 1000}}}
	l := make(leastTimes)
	l.add(p, nil) // interrupted
	l.add(p, []outcome{{took: ms, finished: true}, {took: ms / 2}, {}, {took: 9 * ms, finished: true}})
	if a := l.alone(top, "base", 10); a != nil {
		t.Errorf("without one byte to the farthest host: %+v", a)
	}
	l.add(p, []outcome{{took: 2 * ms, finished: true}, {took: 4 * ms, finished: true}, {took: 3 * ms, finished: true}, {took: 1 * ms}})
	a := l.alone(top, "base", 10)
	if a == nil {
		t.Fatal("no base")
	}
	if a.base != "base" || a.mbit != 10 || a.byteTook(2) != ms || a.byteTook(4) != 3*ms || a.took(1000, 4, 10) != 9*ms {
		t.Errorf("%+v", a)
	}
}
