package sim

import (
	"reflect"
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/topology"
)

// With timestamps the first acknowledgement after a timeout ends its doubling, so flows that
// lose packets again wait for less. Where nothing is lost they change nothing.
func TestTimestamps(t *testing.T) {
	incast := func(timestamps bool, queueBytes int, seed uint64) *Result {
		c := drbSetting(parse(t, "fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000"), "ecmp")
		c.Seed, c.Duration, c.Warmup, c.Resequencer = seed, time.Minute, 0, nil
		c.Queues = []Queue{{Bytes: queueBytes}}
		c.TCP.WindowBytes, c.TCP.RTOMin, c.TCP.Handshake, c.TCP.Timestamps = 64<<10, 250*time.Millisecond, true, timestamps
		l := new(list)
		for h := 1; h < c.Topology.NumHosts(); h++ {
			l.flows = append(l.flows, workload.Flow{Src: topology.NodeID(h), Bytes: 262_800})
		}
		c.Workload = l
		return run(t, c)
	}
	if a, b := incast(false, 16<<20, 1), incast(true, 16<<20, 1); a.Retransmits > 0 || !reflect.DeepEqual(a, b) {
		t.Errorf("nothing lost (%d packets sent again): timestamps change %v to %v", a.Retransmits, a, b)
	}
	var without, with time.Duration
	for seed := uint64(1); seed <= 20; seed++ {
		a, b := incast(false, 32<<10, seed), incast(true, 32<<10, seed)
		if a.Flows != 15 || b.Flows != 15 || a.Timeouts == 0 || b.Timeouts == 0 {
			t.Fatalf("seed %d: %d and %d flows of 15 ended, with %d and %d timeouts", seed, a.Flows, b.Flows, a.Timeouts, b.Timeouts)
		}
		without, with = without+a.End, with+b.End
	}
	if with > without*95/100 {
		t.Errorf("incasts take %v with timestamps, and %v without", with, without)
	}
}
