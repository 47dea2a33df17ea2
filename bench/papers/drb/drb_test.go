package drb

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/slotted"
	"weft/topology"
)

func parse(t *testing.T, spec string) *topology.Topology {
	t.Helper()
	fabric, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return fabric
}

func TestFabrics(t *testing.T) {
	for spec, hosts := range map[string]int{
		fatTree24: 3456, fatTree8: 128, vl2: 3840, overFatTree: 6912, overVL2: 7680, testbedFabric: 54,
	} {
		if got := parse(t, spec).NumHosts(); got != hosts {
			t.Errorf("%s has %d hosts, want %d", spec, got, hosts)
		}
	}
}

// Every run is the one that its name says.
func TestPlanAppendixB(t *testing.T) {
	for _, quick := range []bool{false, true} {
		b, p := planAppendixB(papers.Options{Quick: quick, Seed: 7})
		seen := map[int]bool{}
		want := func(i int, right func(slotted.Config) bool) {
			t.Helper()
			if seen[i] || b.configs[i].Seed != 7 || !right(b.configs[i]) {
				t.Errorf("quick %v: run %d is %+v", quick, i, b.configs[i])
			}
			seen[i] = true
		}
		for i, r := range rules {
			want(p.main[i], func(c slotted.Config) bool { return c.Rule == r.rule && c.Load == 0.95 && c.Ports == 24 })
			want(p.full[i], func(c slotted.Config) bool { return c.Rule == r.rule && c.Load == 1 && !c.EqualStarts })
			want(p.aligned[i], func(c slotted.Config) bool { return c.Rule == r.rule && c.Load == 1 && c.EqualStarts })
			for j, load := range p.loads {
				want(p.byLoad[i][j], func(c slotted.Config) bool { return c.Rule == r.rule && c.Load == load && c.Ports == 24 })
			}
			for j, n := range p.ports {
				want(p.byPorts[i][j], func(c slotted.Config) bool { return c.Rule == r.rule && c.Load == 0.95 && c.Ports == int(n) })
			}
		}
		want(p.fromEmpty, func(c slotted.Config) bool { return c.Warmup == 0 && c.Slots == 1200 && c.Load == 0.95 })
		for i, run := range p.growth {
			want(run, func(c slotted.Config) bool {
				return c.Load == 1 && (i == 0 || c.Warmup == 4*b.configs[p.growth[i-1]].Warmup)
			})
		}
		if len(seen) != len(b.configs) {
			t.Errorf("quick %v: %d runs, %d looked at", quick, len(b.configs), len(seen))
		}
	}
}

func TestWithECN(t *testing.T) {
	c := withECN(network(papers.Options{}, parse(t, vl2Small), "drb", steady))
	for _, q := range c.Queues {
		want := 32 << 10
		if q.RateMbit == 5000 {
			want = 160 << 10
		}
		if q.ECNBytes != want {
			t.Errorf("a port of %v Mbit/s marks from %d bytes, want %d", q.RateMbit, q.ECNBytes, want)
		}
	}
	if !c.TCP.ECN {
		t.Error("TCP does not listen to marks")
	}
}

// ECMP keeps the order of flows. Behind a resequencer its losses would be timeouts.
func TestNetwork_onlyReorderedFlowsAreResequenced(t *testing.T) {
	for _, policy := range policies {
		c := network(papers.Options{}, parse(t, fatTree8), policy, steady)
		if got, want := c.Resequencer != nil, policy != "ecmp"; got != want {
			t.Errorf("%s: resequencer %v, want %v", policy, got, want)
		}
	}
}

func TestOvertaken(t *testing.T) {
	m := measured{Result: &sim.Result{}}
	if got := overtaken(m, 3); got != 0 {
		t.Errorf("of no packets %v %%", got)
	}
	m.OutOfOrder = [64]uint64{0: 6, 2: 1, 3: 2, 63: 1}
	if got := overtaken(m, 3); got != 30 {
		t.Errorf("got %v %%, want 3 of 10 packets", got)
	}
}

// delivered is a View in which every host has got so many bytes.
type delivered int64

func (delivered) QueueBytes(int) int                  { return 0 }
func (delivered) SentBytes(int) int64                 { return 0 }
func (d delivered) Delivered(h topology.NodeID) int64 { return int64(d) }

func TestThroughput(t *testing.T) {
	curve := throughput{hosts: 2}
	// 500 bytes for each of two hosts in a microsecond are 8 Gbit/s.
	for _, at := range []int{1, 2, 3, 4} {
		bytes := 500 * at
		if at == 4 {
			bytes = 500*3 + 250
		}
		curve.sample(time.Duration(at)*time.Microsecond, delivered(bytes))
	}
	want := []point{{1000, 8}, {2000, 8}, {3000, 8}, {4000, 4}}
	if !reflect.DeepEqual(curve.points, want) {
		t.Fatalf("points %v, want %v", curve.points, want)
	}
	if got := curve.mean(2*time.Microsecond, 4*time.Microsecond); got != 6 {
		t.Errorf("mean %v, want 6", got)
	}
	if got := curve.settled(2*time.Microsecond, 9*time.Microsecond, 4); got != 2*time.Microsecond {
		t.Errorf("settled after %v, want 2 µs", got)
	}
	if got := curve.settled(0, 9*time.Microsecond, 1); got != 9*time.Microsecond {
		t.Errorf("settled after %v where it never does", got)
	}
}

// A core of a fat-tree has a link to each pod, and without it no path leads there.
func TestLinksOfCore(t *testing.T) {
	fabric := parse(t, testbedFabric)
	for r := range 9 {
		links, err := linksOfCore(fabric, r)
		if err != nil || len(links) != 6 {
			t.Fatalf("3.%d: %d links, error %v", r, len(links), err)
		}
		live := fabric.Without(links...).Paths(0, 53).Live
		for _, path := range live {
			if path == r {
				t.Errorf("3.%d: its path is live without it", r)
			}
		}
		if len(live) != 8 {
			t.Errorf("3.%d: %d paths live, want 8", r, len(live))
		}
	}
	if _, err := linksOfCore(fabric, 9); err == nil {
		t.Error("a core that there is not")
	}
}

// All but the reserved hosts of the busy racks send to one host of other pods and
// receive from one, without end; the reserved ones have the probes to themselves.
func TestBusyRacks(t *testing.T) {
	fabric := parse(t, fatTree8)
	source, err := busyRacks(fabric, 3)
	if err != nil {
		t.Fatal(err)
	}
	const pod = 16
	busy := func(h topology.NodeID) bool { return h < 4 || h >= pod && h < pod+4 }
	sends, receives := map[topology.NodeID]int{}, map[topology.NodeID]int{}
	probes, mice := 0, 0
	for range 20000 {
		f, ok := source.Next()
		switch {
		case !ok:
			t.Fatal("no more flows")
		case f.Bytes == 0:
			sends[f.Src]++
			receives[f.Dst]++
			if busy(f.Src) == busy(f.Dst) {
				t.Errorf("bulk from %d to %d", f.Src, f.Dst)
			}
		case f.Class == probeClass:
			probes++
			if f.Src != 0 || f.Dst != pod || f.Bytes != probeBytes {
				t.Errorf("probe %+v", f)
			}
		default:
			mice++
			if busy(f.Src) || f.Bytes > 4096 {
				t.Errorf("short flow %+v", f)
			}
		}
	}
	for h := range topology.NodeID(pod + 4) {
		want := 0
		if busy(h) && h != 0 && h != pod {
			want = 1
		}
		if sends[h] != want || receives[h] != want {
			t.Errorf("host %d sends %d and receives %d bulk flows, want %d", h, sends[h], receives[h], want)
		}
	}
	// 5,000 a second beside 96 hosts' 1,000.
	if got, want := float64(probes)/float64(mice), 5.0/96; math.Abs(got-want) > want/5 {
		t.Errorf("%d probes beside %d short flows", probes, mice)
	}
}

func TestPooledSeed(t *testing.T) {
	var of []uint64
	for seed := range uint64(3) {
		for i := range uint64(5) {
			of = append(of, pooledSeed(seed+1, 5, i))
		}
	}
	for i, seed := range of {
		if seed != uint64(i+1) {
			t.Fatalf("three seeds' permutations are of %v, want 1 to 15", of)
		}
	}
}

func TestPool(t *testing.T) {
	one := func(goodput float64, ns int64) measured {
		m := measured{goodput: goodput, hosts: []float64{goodput}, Result: &sim.Result{
			Latency: hdrhistogram.New(1, 1e9, 3), RTT: hdrhistogram.New(1, 1e9, 3), Resequencing: hdrhistogram.New(1, 1e9, 3),
		}}
		m.Latency.RecordValue(ns)
		return m
	}
	got := pool([]measured{one(900, 1000), one(800, 3000)})
	if got.goodput != 850 || !reflect.DeepEqual(got.hosts, []float64{900, 800}) {
		t.Errorf("goodput %v of hosts %v, want 850 of 900 and 800", got.goodput, got.hosts)
	}
	if got.Latency.TotalCount() != 2 || math.Abs(mean(got.Latency)-2) > 0.01 {
		t.Errorf("latency %v µs of %d packets, want 2 of 2", mean(got.Latency), got.Latency.TotalCount())
	}
}
