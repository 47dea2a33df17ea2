package sim

import (
	"reflect"
	"testing"
	"time"

	"weft/bench/sim/spray"
	"weft/bench/sim/workload"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

const rates = ",host-rate=1000,fabric-rate=1000,core-rate=1000"

func everyPolicy() []string { return append(policy.Names(), spray.SwitchNames()...) }

// TestRun_everyPolicy completes a permutation, on all kinds of fabrics.
func TestRun_everyPolicy(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4" + rates, "leaf-spine:leaves=4,spines=3,hosts=3,host-rate=1000,fabric-rate=1000", "vl2:d0=2,d1=4,d2=4,hosts=3,host-rate=1000,fabric-rate=5000,core-rate=5000"} {
		for _, name := range everyPolicy() {
			topo := parse(t, spec)
			const bytes = 300_000
			config := func() Config {
				c := drbSetting(topo, name)
				c.Warmup, c.Duration = 0, time.Second
				c.Workload = permutation(topo, 7, bytes)
				return c
			}
			c := config()
			ended := 0
			c.OnFlow = func(e FlowEnd) {
				ended++
				if e.FCT < 2400*time.Microsecond {
					t.Errorf("%s, %s: %d bytes in %v, faster than the link", spec, name, bytes, e.FCT)
				}
			}
			r := run(t, c)
			if ended != topo.NumHosts() || int(r.Flows) != ended {
				t.Errorf("%s, %s: %d flows ended, and %d counted; want %d", spec, name, ended, r.Flows, topo.NumHosts())
			}
			for h, n := range r.DeliveredBytes {
				if n != bytes {
					t.Fatalf("%s, %s: host %d got %d bytes, want %d", spec, name, h, n, bytes)
				}
			}
			if again := run(t, config()); !reflect.DeepEqual(r, again) {
				t.Errorf("%s, %s: the same Config gives another Result", spec, name)
			}
		}
	}
}

// TestRun_seed changes what is random.
func TestRun_seed(t *testing.T) {
	topo := parse(t, "fat-tree:k=4"+rates)
	config := func(seed uint64) Config {
		c := drbSetting(topo, "rb")
		c.Seed = seed
		c.Workload = permutation(topo, 7, 0)
		return c
	}
	if reflect.DeepEqual(run(t, config(1)), run(t, config(2))) {
		t.Error("another seed gives the same Result")
	}
}

// TestRun_manyFlows uses flows again and again: memory is for those under way.
func TestRun_manyFlows(t *testing.T) {
	topo := parse(t, "fat-tree:k=4"+rates)
	for _, name := range []string{"drb", "luopan", "conga", "switch-conga", "switch-drill"} {
		c := drbSetting(topo, name)
		c.Warmup, c.Duration = 0, 10*time.Second
		c.Resequencer = &resequencer.Config{}
		l := permutation(topo, 7, 3000)
		left := 3000
		l.then = func(f workload.Flow, at time.Duration, begin func(workload.Flow)) {
			if left--; left >= 0 {
				f.Start = at + time.Microsecond
				f.Dst = topology.NodeID((int(f.Dst) + 3) % topo.NumHosts())
				if f.Dst == f.Src {
					f.Dst = (f.Dst + 1) % topology.NodeID(topo.NumHosts())
				}
				begin(f)
			}
		}
		c.Workload = l
		s, err := newSimulation(c)
		if err != nil {
			t.Fatal(err)
		}
		s.run()
		r := s.result()
		if r.Flows != 3016 {
			t.Errorf("%s: %d flows ended, want 3016", name, r.Flows)
		}
		if s.flows.n > 100 || r.Resequencer.Flows > 100 || len(s.later) > 20 {
			t.Errorf("%s: %d flows kept, %d by the resequencer, %d to begin later, of 16 at a time", name, s.flows.n, r.Resequencer.Flows, len(s.later))
		}
	}
}

// TestRun_drb is DRB §5.4 (n = 8, 128 hosts): 938 Mbit/s against 865 of random
// bouncing, with the window of 64 KB that fits its round trips.
func TestRun_drb(t *testing.T) {
	topo := parse(t, "fat-tree:k=8"+rates)
	got := make(map[string]float64)
	for _, name := range []string{"drb", "rb", "ecmp"} {
		c := drbSetting(topo, name)
		c.TCP.WindowBytes = 64 << 10
		c.Warmup, c.Duration = 5*time.Millisecond, 15*time.Millisecond
		c.Workload = permutation(topo, 3, 0)
		got[name] = goodput(c, run(t, c)) / 1e6
	}
	near(t, "goodput of DRB", got["drb"], 938, 0.05)
	near(t, "goodput of RB", got["rb"], 865, 0.05)
	if got["ecmp"] > 0.6*got["drb"] {
		t.Errorf("ECMP has %.0f Mbit/s, DRB %.0f; want far less", got["ecmp"], got["drb"])
	}
}
