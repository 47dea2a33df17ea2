package fct

import (
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/topology"
)

// Two jobs by hand: of three flows into host 9, and of one flow and one that did not begin.
func TestPlan_jobsByHand(t *testing.T) {
	p := plan{jobs: 2, after: []int{-1, -1, 0, -1, 3}, flows: []workload.Flow{
		{Src: 1, Dst: 9, Bytes: 100, Job: 0}, {Src: 2, Dst: 9, Bytes: 200, Job: 0}, {Src: 1, Dst: 9, Bytes: 50, Job: 0},
		{Src: 3, Dst: 4, Bytes: 10, Job: 1}, {Src: 3, Dst: 5, Bytes: 20, Job: 1},
	}}
	at := func(began, took int, finished bool) outcome {
		return outcome{begun: true, began: time.Duration(began), took: time.Duration(took), finished: finished}
	}
	flows, jobs := p.samples([]outcome{at(10, 5, true), at(8, 4, true), at(15, 30, true), at(20, 7, false), {}}, func(_, _ topology.NodeID, bytes int64) time.Duration { return time.Duration(bytes) })
	if flows[2] != (sample{bytes: 50, took: 30, ideal: 50, begun: true, whole: true, finished: true}) || flows[4].begun || flows[4].finished {
		t.Errorf("%+v", flows)
	}
	// 350 bytes go into host 9: more than out of any host.
	if jobs[0] != (sample{bytes: 350, took: 45 - 8, ideal: 350, begun: true, whole: true, finished: true}) {
		t.Errorf("%+v", jobs[0])
	}
	if jobs[1] != (sample{bytes: 30, took: 7, ideal: 30, begun: true}) {
		t.Errorf("%+v", jobs[1])
	}
}

// A flow begins when the one has ended that it follows; after one that has not ended, never.
func TestPlay_flowsFollow(t *testing.T) {
	s := session(t, 100)
	all, broken, err := play(t.Context(), s, plan{after: []int{-1, 0, 1}, flows: []workload.Flow{
		{Src: 0, Dst: 2, Bytes: 200_000}, {Src: 0, Dst: 3, Bytes: 1000}, {Src: 1, Dst: 2, Bytes: 1000}}}, time.Minute, nil)
	if err != nil || broken != nil {
		t.Fatal(err, broken)
	}
	for i, o := range all {
		if !o.finished || !o.begun {
			t.Fatalf("flow %d: %+v", i, o)
		}
		if i > 0 && o.began < all[i-1].began+all[i-1].took {
			t.Errorf("flow %d begins at %v, the one before ends at %v", i, o.began, all[i-1].began+all[i-1].took)
		}
	}
	all, broken, err = play(t.Context(), s, plan{after: []int{-1, 0}, flows: []workload.Flow{
		{Src: 0, Dst: 2, Bytes: 1 << 32}, {Src: 0, Dst: 3, Bytes: 1000}}}, 300*time.Millisecond, nil)
	if err != nil || broken != nil || all[0].finished || !all[0].begun || all[1] != (outcome{}) {
		t.Errorf("%+v, %v, %v", all, broken, err)
	}
}
