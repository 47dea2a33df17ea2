package sim

import (
	"strings"
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/topology"
)

// Three flows of a pair at once, and one later: with one connection they follow each other,
// and only the first has to open the window.
func TestKept_flowsFollowEachOther(t *testing.T) {
	fcts := func(connections int) (took []time.Duration) {
		c := drbSetting(parse(t, "leaf-spine:leaves=2,spines=2,hosts=2,host-rate=10000,fabric-rate=10000"), "switch-ecmp")
		c.Warmup, c.Duration, c.Delay, c.Resequencer = 0, time.Second, 250*time.Microsecond, nil
		c.Connections = connections
		c.TCP.RTOMin = 200 * time.Millisecond
		w := &list{}
		for i, start := range []time.Duration{0, 0, 0, 30 * time.Millisecond} {
			w.flows = append(w.flows, workload.Flow{Src: 0, Dst: 2, Bytes: 73_000, Start: start, Class: uint8(i)})
		}
		c.Workload = w
		took = make([]time.Duration, 4)
		c.OnFlow = func(e FlowEnd) { took[e.Class] = e.FCT }
		run(t, c)
		return took
	}
	// Alone: 10, 20 and 20 segments. A round trip is 2 ms and the time of a packet.
	own, one := fcts(0), fcts(1)
	const trip = 2 * time.Millisecond
	if own[0] < 2*trip || own[0] > 3*trip || own[3] < 2*trip {
		t.Fatalf("connections of their own: %v, want between two and three of %v", own, trip)
	}
	if one[0] < 2*trip || one[0] > 3*trip {
		t.Errorf("the first on its connection takes %v, want %v to %v", one[0], 2*trip, 3*trip)
	}
	for i := 1; i < 3; i++ { // each a trip after the acknowledgement of the one before
		if d := one[i] - one[i-1]; d < trip || d > 3*trip/2 {
			t.Errorf("flow %d ends %v behind the one before, want about %v", i, d, trip)
		}
	}
	if one[3] > trip {
		t.Errorf("the last takes %v, want half a round trip", one[3])
	}
}

// Subflows, too, open their windows once: four of them send 40 segments at first.
func TestKept_subflowsKeepTheirWindows(t *testing.T) {
	c := drbSetting(parse(t, "leaf-spine:leaves=2,spines=2,hosts=2,host-rate=10000,fabric-rate=10000"), "switch-ecmp")
	c.Warmup, c.Duration, c.Delay, c.Resequencer = 0, time.Second, 250*time.Microsecond, nil
	c.Connections, c.TCP.Subflows, c.TCP.RTOMin, c.TCP.WindowBytes = 1, 4, 200*time.Millisecond, 1<<20
	w := &list{}
	for i, bytes := range []int64{146_000, 100_000, 100_000} { // 100, 69 and 69 segments
		w.flows = append(w.flows, workload.Flow{Src: 0, Dst: 2, Bytes: bytes, Start: time.Duration(i) * 50 * time.Millisecond, Class: uint8(i)})
	}
	c.Workload = w
	took := make([]time.Duration, 3)
	c.OnFlow = func(e FlowEnd) { took[e.Class] = e.FCT }
	run(t, c)
	const trip = 2 * time.Millisecond
	if took[0] < 3*trip/2 || took[1] > trip || took[2] > trip {
		t.Errorf("%v, want a round trip of %v and a half first, and half of one then", took, trip)
	}
}

// Whatever is lost on the way, every flow ends once and all of its bytes are delivered.
func TestKept_everyPolicyDeliversAll(t *testing.T) {
	for _, name := range append(everyPolicy(), "switch-ecmp, subflows") {
		topo := parse(t, "leaf-spine:leaves=2,spines=4,hosts=4,host-rate=1000,fabric-rate=1000")
		policy, _, subflows := strings.Cut(name, ",")
		c := drbSetting(topo, policy)
		c.Warmup, c.Duration, c.Connections = 0, 10*time.Second, 2
		c.Queues = []Queue{{Bytes: 12_000}}
		if subflows {
			c.Resequencer, c.TCP.Subflows = nil, 4
		}
		w := new(list)
		total := make([]int64, topo.NumHosts())
		for i := range 120 {
			f := workload.Flow{Src: topology.NodeID(i % 4), Dst: topology.NodeID(4 + i%3), Bytes: int64(1 + i*i%9*7000), Start: time.Duration(i/40) * 20 * time.Millisecond, Job: uint32(i), Alone: i%5 == 0}
			w.flows = append(w.flows, f)
			total[f.Dst] += f.Bytes
		}
		c.Workload = w
		ended := make(map[uint32]int)
		c.OnFlow = func(e FlowEnd) { ended[e.Job]++ }
		r := run(t, c)
		if len(ended) != 120 || r.Flows != 120 {
			t.Errorf("%s: %d flows of 120 ended, in all %d times", name, len(ended), r.Flows)
		}
		for h, want := range total {
			if got := r.DeliveredBytes[h]; got != want {
				t.Errorf("%s: host %d has %d bytes, want %d", name, h, got, want)
			}
		}
	}
}
