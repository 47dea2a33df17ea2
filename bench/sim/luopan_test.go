package sim

import (
	"strings"
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

// turns is luopan with paths that take turns.
const turns = "luopan-turns"

// slowSetting is that of `weft demo`: slow links, queues of 50 packets, a round trip of
// some ten flowcells.
func slowSetting(topo *topology.Topology, name string, seed uint64) Config {
	c := Config{
		Topology: topo, Seed: seed, Policy: name, Options: policy.Options{FlowcellBytes: 4096},
		Duration: 9 * time.Second, Warmup: 3 * time.Second, Delay: 50 * time.Microsecond,
		HostQueueBytes: 75000, Queues: []Queue{{Bytes: 75000}},
		Resequencer: &resequencer.Config{Hold: 100 * time.Millisecond, MinHold: 8 * time.Millisecond},
	}
	c.TCP.WindowBytes, c.TCP.RTOMin, c.TCP.RTOInitial = 512<<10, 200*time.Millisecond, time.Second
	return c
}

// One stream a host at its full rate: samples must not make luopan herd. Random paths
// are better than the best sample alone, and taking turns is better than these.
func TestRun_luopanPermutation(t *testing.T) {
	topo := parse(t, "fat-tree:k=4,host-rate=6,fabric-rate=6,core-rate=6")
	got := make(map[string]float64)
	for _, name := range []string{"presto", "rand", "luopan", turns} {
		for seed := range uint64(2) {
			c := slowSetting(topo, strings.TrimSuffix(name, turns[len("luopan"):]), 1+seed)
			c.Spray.Turns = name == turns
			to, err := workload.Permutation(topo, workload.OtherPod, 1+seed)
			if err != nil {
				t.Fatal(err)
			}
			l := new(list)
			for h, d := range to {
				l.flows = append(l.flows, workload.Flow{Src: topology.NodeID(h), Dst: d})
			}
			c.Workload = l
			got[name] += goodput(c, run(t, c)) / 2
		}
	}
	t.Logf("%v", got)
	for _, name := range []string{"luopan", turns} {
		if got[name] < .95*got["presto"] || got[name] < 1.03*got["rand"] {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A link at a quarter that nobody was told of: luopan has more than half as much again
// as who does not look.
func TestRun_luopanSlowLink(t *testing.T) {
	const shape = "leaf-spine:leaves=3,spines=4,hosts=4,host-rate=40,fabric-rate=20"
	got := make(map[string]float64)
	for _, name := range []string{"presto", "luopan", turns} {
		c := slowSetting(parse(t, shape+",e0.2-a0.0=5"), strings.TrimSuffix(name, turns[len("luopan"):]), 1)
		c.Spray.Turns = name == turns
		c.Queues = append(c.Queues, Queue{RateMbit: 5, Bytes: 18750})
		l := new(list)
		for from := range 8 {
			for i := range 2 {
				l.flows = append(l.flows, workload.Flow{Src: topology.NodeID(from), Dst: topology.NodeID(8 + (from+i)%4)})
			}
		}
		c.Workload = l
		s, err := newSimulation(c)
		if err != nil {
			t.Fatal(err)
		}
		s.hosts.SetTopology(parse(t, shape))
		s.run()
		got[name] = goodput(c, s.result())
	}
	t.Logf("%v", got)
	for _, name := range []string{"luopan", turns} {
		if got[name] < 1.6*got["presto"] {
			t.Errorf("%s: %v", name, got)
		}
	}
}
