package conga

import (
	"math"
	"slices"
	"testing"
	"time"

	"weft/bench/sim"
	"weft/bench/sim/workload"
	"weft/topology"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// Three flows, of which one ends: the others count up to the end.
func TestCompletion_countsWhatHasNotEndedAsIfItDid(t *testing.T) {
	var c completion
	flows := []workload.Flow{
		{Start: 1 * time.Second, Bytes: smallBytes - 1},
		{Start: 2 * time.Second, Bytes: smallBytes},
		{Start: 4 * time.Second, Bytes: largeBytes + 1},
	}
	for _, f := range flows {
		c.began(f, time.Second)
	}
	c.ended(sim.FlowEnd{Flow: flows[0], FCT: 500 * time.Millisecond})
	fabric, err := testbed(32)
	if err != nil {
		t.Fatal(err)
	}
	r := run{fabric: fabric, times: times{warmup: time.Second, arrivals: 3 * time.Second}}
	o := &outcome{run: r, completion: c, Result: &sim.Result{End: 10 * time.Second}}
	if want := float64(2*smallBytes+largeBytes) * 8 / 2 / 320e9; !near(o.offered(), want) {
		t.Errorf("offered %v, want %v", o.offered(), want)
	}
	for _, want := range []struct {
		bin
		flows int
		fct   float64
	}{{all, 3, (0.5 + 8 + 6) / 3}, {little, 1, 0.5}, {big, 1, 6}} {
		if o.flows(want.bin) != want.flows || !near(o.fct(want.bin), want.fct) {
			t.Errorf("%s: %d flows of %v s, want %d of %v", want.name, o.flows(want.bin), o.fct(want.bin), want.flows, want.fct)
		}
	}
	if got, want := o.normalized(), (0.5+8+6)/3; !near(got, want) {
		t.Errorf("normalized to a second each: %v, want %v", got, want)
	}
	if none := (sum{}).mean(time.Second); none != 0 {
		t.Errorf("of none: %v", none)
	}
}

// A flow of one window that is alone takes what ideal says, and the time of its last
// packet on two links of the fabric.
func TestIdeal_isWhatTheSimulatorTakes(t *testing.T) {
	fabric, err := testbed(2)
	if err != nil {
		t.Fatal(err)
	}
	for _, bytes := range []int64{1, 1460, 2 * 1460, 10 * 1460} {
		var fct time.Duration
		r := run{fabric: fabric, policy: drb, traffic: enterprise, load: 0.1, times: times{0, time.Second, time.Second}}
		c, err := r.config(1)
		if err != nil {
			t.Fatal(err)
		}
		c.Workload = workload.Merge(&one{workload.Flow{Src: 0, Dst: 2, Bytes: bytes}, false})
		c.OnFlow = func(f sim.FlowEnd) { fct = f.FCT }
		if _, err := sim.Run(c); err != nil {
			t.Fatal(err)
		}
		last := (bytes-1)%1460 + 1 + 40 // all that come before are as long
		want := ideal(bytes, 10_000) + time.Duration(2*last*8*1000/40_000)
		if d := fct - want; d < -2 || d > 2 { // ns of rounding
			t.Errorf("%d bytes take %v, want %v", bytes, fct, want)
		}
	}
}

// one is a Source of one flow.
type one struct {
	f    workload.Flow
	done bool
}

func (o *one) Next() (workload.Flow, bool) {
	ok := !o.done
	o.done = true
	return o.f, ok
}

func (o *one) Done(workload.Flow, time.Duration, func(workload.Flow)) {}

// sent is a View of ports that have sent so much.
type sent map[int]int64

func (s sent) QueueBytes(port int) int         { return int(s[port]) }
func (s sent) SentBytes(port int) int64        { return s[port] }
func (sent) Delivered(h topology.NodeID) int64 { return 0 }

func TestImbalance_ofABin(t *testing.T) {
	fabric, err := testbed(2)
	if err != nil {
		t.Fatal(err)
	}
	m := newImbalance(fabric.Topology)
	if len(m.leaves) != 2 || len(m.leaves[0]) != 4 || m.leaves[0][0]%2 != 0 {
		t.Fatalf("leaves %v", m.leaves)
	}
	v := sent{}
	load := func(leaf int, bytes ...int64) {
		for i, b := range bytes {
			v[m.leaves[leaf][i]] += b
		}
	}
	load(0, 1000, 0, 0, 0)
	m.sample(0, v) // what was before the first bin
	load(0, 100, 200, 300, 200)
	m.sample(1, v)
	load(1, 5, 5, 5, 5)
	m.sample(2, v)
	if want := []float64{100, 0}; !slices.Equal(m.percent, want) {
		t.Errorf("%v, want (300-100)/200 = 100 %% of leaf 0, and then 0 %% of leaf 1", m.percent)
	}
}

func TestQueueMeans(t *testing.T) {
	m := &queueMeans{total: make([]float64, 4)}
	m.sample(0, sent{1: 10, 3: 100})
	m.sample(1, sent{1: 30})
	if m.mean(1) != 20 || m.mean(0) != 0 || m.over([]int{1, 3}) != 35 {
		t.Errorf("%+v", m)
	}
}

func TestFabrics_areThePapers(t *testing.T) {
	whole, err := testbed(32)
	if err != nil {
		t.Fatal(err)
	}
	if n := whole.NumHosts(); n != 64 || workload.FabricMbit(whole.Topology) != 2*160_000 {
		t.Errorf("%d hosts, %v Mbit/s", n, workload.FabricMbit(whole.Topology))
	}
	half, err := broken(32)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := half.LinkByName(brokenLink)
	if err != nil || half.Live(dead.ID) || half.parallel != 2 || len(half.Down()) != 1 {
		t.Errorf("%v: %v is not the only link that is down", err, brokenLink)
	}
	left, err := half.LinkByName(leftLink)
	if one, other := int(half.Node(dead.B).ID)/2, int(half.Node(left.B).ID)/2; err != nil || !half.Live(left.ID) || left.A != dead.A || one != other {
		t.Errorf("%v: %v and %v are not of one leaf and one spine", err, brokenLink, leftLink)
	}
	for seed := range uint64(50) {
		f, err := scattered(48, 9, seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		links := 0.0
		up, down := fabricPorts(f.Topology)
		for i, p := range up {
			links += f.Rate(topology.LinkID(p/2)) / 40_000
			if down[i] != p+1 {
				t.Errorf("seed %d: ports %d and %d", seed, p, down[i])
			}
		}
		if f.NumHosts() != 288 || links != 54-9 {
			t.Errorf("seed %d: %d hosts, %v links, want 288 and 45", seed, f.NumHosts(), links)
		}
	}
}

// Rooms of all ports are of one time, and every rate has its own.
func TestQueues_areOfATime(t *testing.T) {
	f, err := scattered(48, 9, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range queues(f.Topology) {
		if ms := float64(q.Bytes) * 8 / q.RateMbit / 1e3; math.Abs(ms-bufferMs) > 0.001 {
			t.Errorf("%v Mbit/s: %v ms", q.RateMbit, ms)
		}
	}
	if n := len(queues(f.Topology)); n != 2 {
		t.Errorf("%d rates", n)
	}
}

// The data mining trace keeps its weight when its longest flows are cut off.
func TestTraffic_cutOffKeepsItsHeavyTail(t *testing.T) {
	sizes, err := dataMining.sizes()
	if err != nil {
		t.Fatal(err)
	}
	const border = 35e6
	// Of the bytes, those in flows above the border: the rest is Truncate's, less
	// what the large ones have of it.
	above := 1 - sizes.Part(border)
	part := 1 - (sizes.Truncate(border).Mean()-above*border)/sizes.Mean()
	if above < 0.03 || above > 0.045 || part < 0.9 {
		t.Errorf("%.1f %% of flows are above 35 MB and have %.0f %% of the bytes; the paper has 3.6 and 95", above*100, part*100)
	}
}

func TestMostAt_isTheGreatestGain(t *testing.T) {
	of := func(policy string, load, fct float64) *outcome {
		o := &outcome{run: run{policy: policy, traffic: enterprise, load: load}, Result: &sim.Result{}}
		o.completion.all = sum{begun: 1, ended: 1, took: fct}
		return o
	}
	var results []*outcome
	for i, load := range baselineLoads {
		results = append(results, of(ecmp, load, 10), of(conga, load, []float64{9, 7, 8}[i]))
	}
	rows := mostAt(results, conga, enterprise, all, -35)
	if len(rows) != 2 || !near(rows[0].Ours, -30) || !rows[0].OK || rows[1].Ours != 0.8 || rows[1].Label != rows[0].Label {
		t.Errorf("%+v", rows)
	}
	if rows := mostAt(results, conga, enterprise, big, -20); rows[0].Ours != 0 || rows[0].OK {
		t.Errorf("without large flows: %+v", rows)
	}
}
