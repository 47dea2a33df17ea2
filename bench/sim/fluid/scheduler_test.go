package fluid

import (
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/hedera"
)

// A reservation ends with its flow: what comes later finds the path free again.
func TestGlobalFirstFit_reservesAsLongAsFlowsLast(t *testing.T) {
	f := fabricOf(t, kinds[0])
	g := NewScheduled(&Hash{Fabric: f, Seed: 1}, hedera.NewGlobalFirstFit(f))
	l := &list{ended: make([]time.Duration, 12)}
	for i := range 12 {
		// Two at a time between pods, each 1 s long and 1 s from the next.
		l.flows = append(l.flows, workload.Flow{Start: time.Duration(i/2) * 2 * time.Second,
			Src: nodeID(i % 2), Dst: nodeID(8 + i%2), Bytes: 125e6, Job: uint32(i)})
	}
	if _, err := Run(Config{Fabric: f, Workload: l, Scheduler: g, Period: time.Second / 100, Duration: time.Minute}); err != nil {
		t.Fatal(err)
	}
	for i, at := range l.ended {
		took := at - time.Duration(i/2)*2*time.Second
		if took < time.Second || took > 1010*time.Millisecond {
			t.Errorf("flow %d took %v, want 1 s, a round more at most", i, took)
		}
	}
}
