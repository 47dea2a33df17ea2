package drill

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/workload"
	"weft/topology"
)

func parse(t *testing.T, spec string) *topology.Topology {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func TestFabrics(t *testing.T) {
	for spec, hosts := range map[string]int{large: 2304, scaledUp: 320, scaled: 320, slow: 32, even: 320, uneven: 320, vl2: 320, heterogeneousSpec(16, 48): 768} {
		if got := parse(t, spec).NumHosts(); got != hosts {
			t.Errorf("%s has %d hosts, want %d", spec, got, hosts)
		}
	}
	// Scaled out or up, the core carries the same (DRILL §4).
	if a, b := sends(t, parse(t, scaledUp), 1), sends(t, parse(t, scaled), 1); a != b || a != 16*4*40_000 {
		t.Errorf("cores carry %v and %v Mbit/s", a, b)
	}
}

// sends is what the senders can send up where one of so many leaves sends.
func sends(t *testing.T, top *topology.Topology, every int) float64 {
	t.Helper()
	from, to, mbit := senders(top, every)
	if all := len(from) + len(to); all != top.NumHosts() {
		t.Errorf("%d hosts send or receive, of %d", all, top.NumHosts())
	}
	return mbit
}

// VL2 of Fig. 10 has 16 ToR, 8 aggregation and 4 intermediate switches.
func TestVL2_hasThePapersSwitches(t *testing.T) {
	count := map[topology.Layer]int{}
	for n := range parse(t, vl2).Nodes() {
		count[n.Layer]++
	}
	if count[topology.LayerEdge] != 16 || count[topology.LayerAgg] != 8 || count[topology.LayerCore] != 4 {
		t.Errorf("switches: %v", count)
	}
}

// Some leaves send to the others, and to them only, what their links up carry at the load.
func TestBetween_isOfSomeLeaves(t *testing.T) {
	top := parse(t, scaledUp)
	for who, every := range everyLeaf {
		const load, until = .5, 20 * time.Millisecond
		s, err := between(top, who, sizes, load, until, 1)
		if err != nil {
			t.Fatal(err)
		}
		leaves, bytes := map[topology.NodeID]bool{}, int64(0)
		for f, ok := s.Next(); ok; f, ok = s.Next() {
			from, to := top.EdgeOf(f.Src), top.EdgeOf(f.Dst)
			leaves[from] = true
			bytes += f.Bytes
			if sent := int(from) - top.NumHosts(); sent%every != 0 || from == to || every > 1 && (int(to)-top.NumHosts())%every == 0 {
				t.Fatalf("%s: leaf %d sends to %d", who, from, to)
			}
		}
		if len(leaves) != 16/every {
			t.Errorf("%s: %d leaves send, want %d", who, len(leaves), 16/every)
		}
		mbit := sends(t, top, every)
		if want := 160_000. * float64(16/every); mbit != want {
			t.Errorf("%s: %v Mbit/s, want %v", who, mbit, want)
		}
		if got, want := float64(bytes)*8/until.Seconds()/1e6, load*mbit; math.Abs(got/want-1) > .1 {
			t.Errorf("%s: %v Mbit/s sent, want %v", who, got, want)
		}
	}
	if _, err := between(top, "nobody", sizes, .5, time.Second, 1); err == nil {
		t.Error("nobody sends")
	}
	for name, part := range smallFlows {
		c, err := cdf(name)
		if err != nil || math.Abs(c.Part(segment)-part) > 1e-9 {
			t.Errorf("%s: %v of one segment, %v", name, c.Part(segment), err)
		}
	}
}

// Every value of every decision is something that runs know.
func TestDecisions_changeRuns(t *testing.T) {
	for _, e := range Experiments() {
		for _, d := range e.Decisions {
			for _, v := range d.Values {
				for _, other := range v.Replace {
					_, isTraffic := everyLeaf[other]
					_, noSizes := cdf(other)
					_, noFabric := topology.Parse(other)
					if !isTraffic && noSizes != nil && noFabric != nil && other != shortEnds {
						t.Errorf("%s, %s: nobody knows %q", e.Name, d.Parameter, other)
					}
				}
				if v.Tune != nil {
					c := network(1, parse(t, scaledUp), drill)
					before := fmt.Sprintf("%+v", c)
					if v.Tune(&c); fmt.Sprintf("%+v", c) == before {
						t.Errorf("%s, %s: %s changes nothing", e.Name, d.Parameter, v.Name)
					}
				}
			}
		}
	}
}

func TestHeterogeneous_hasTwoFastLinksALeaf(t *testing.T) {
	top := parse(t, heterogeneousSpec(16, 48))
	for n := range top.Nodes() {
		if n.Layer != topology.LayerEdge {
			continue
		}
		leaf, fast := int(n.ID)-top.NumHosts(), 0
		for _, p := range top.Ports(n.ID)[48:] {
			spine := p.Index - 48
			want := 10_000.
			if spine == leaf || spine == (leaf+1)%16 {
				want = 20_000
				fast++
			}
			if got := top.Rate(p.Link); got != want {
				t.Errorf("leaf %d to spine %d: %v Mbit/s, want %v", leaf, spine, got, want)
			}
		}
		if fast != 2 {
			t.Errorf("leaf %d has %d fast links", leaf, fast)
		}
	}
}

func TestFailed_leavesAllConnected(t *testing.T) {
	whole := parse(t, scaledUp)
	for seed := range uint64(20) {
		top := failed(whole, 10, seed)
		if len(top.Down()) != 10 || !connected(top) {
			t.Fatalf("seed %d: %v", seed, top.Down())
		}
		for _, l := range top.Down() {
			if int(l) < top.NumHosts() {
				t.Errorf("seed %d: a host's link is down", seed)
			}
		}
		if got, want := sends(t, top, 1), 54*40_000.; got != want {
			t.Errorf("seed %d: %v Mbit/s, want %v", seed, got, want)
		}
	}
	if paths, components := symmetry(whole); paths != 4 || components != 1 {
		t.Errorf("%v paths and %v components in a whole fabric, want 4 and 1", paths, components)
	}
	if paths, components := symmetry(failed(whole, 10, 1)); paths >= 4 || components <= 1.5 {
		t.Errorf("%v paths and %v components with ten links down", paths, components)
	}
	cut := parse(t, "leaf-spine:leaves=2,spines=2,hosts=1")
	if connected(cut.Without(topology.LinkID(2), topology.LinkID(5))) {
		t.Error("leaves with no spine in common are connected")
	}
}

// view is queues in bytes, by port.
type view []int

func (v view) QueueBytes(port int) int         { return v[port] }
func (v view) SentBytes(int) int64             { return 0 }
func (v view) Delivered(topology.NodeID) int64 { return 0 }

func TestSpreads_areStandardDeviations(t *testing.T) {
	top := parse(t, "leaf-spine:leaves=2,spines=2,hosts=1") // links: 2 of hosts, then leaf 0's 2, leaf 1's 2
	v := make(view, 2*top.NumLinks())
	v[4], v[6] = 1500, 3000 // up from leaf 0: nothing and a frame, besides those on the wire
	v[9], v[11] = 5999, 0   // down to leaf 1: 3 and nothing
	s := newSpreads(top)
	s.sample(v)
	if s.meanUp() != .25 || s.meanDown() != .75 {
		t.Errorf("up %v, down %v; want 0.25 and 0.75", s.meanUp(), s.meanDown())
	}
	s.sample(make(view, len(v)))
	if s.meanUp() != .125 || s.meanDown() != .375 {
		t.Errorf("up %v, down %v after a sample of empty queues; want 0.125 and 0.375", s.meanUp(), s.meanDown())
	}
}

func TestFlows_countWhatTheyShould(t *testing.T) {
	var f flows
	for _, dups := range []uint32{0, 1, 3, 4} {
		f.ended(sim.FlowEnd{FCT: time.Duration(dups+1) * time.Microsecond, DupAcks: dups})
	}
	if f.dupPercent() != 75 || f.manyDupPercent() != 25 || f.mean() != 3 || f.percentile(50) != 2 {
		t.Errorf("%v %% with duplicate ACKs, %v %% with many, mean %v, median %v", f.dupPercent(), f.manyDupPercent(), f.mean(), f.percentile(50))
	}
	if none := (flows{us: make([]float64, 200)}); oneAtLeast(&f) != 75 || oneAtLeast(&none) != .5 {
		t.Errorf("%v %% of flows with one at least, of none %v", oneAtLeast(&f), oneAtLeast(&none))
	}
	f.result = new(sim.Result)
	f.result.OutOfOrder[0], f.result.OutOfOrder[1], f.result.OutOfOrder[63] = 90, 7, 3
	if late(&f) != 10 {
		t.Errorf("%v %% late", late(&f))
	}
}

func TestWholeSegments(t *testing.T) {
	for bytes, want := range map[int64]int64{1: 1, 1460: 1460, 1461: 2920, 100_000: 100_740} {
		f, ok := wholeSegments{once{bytes}}.Next()
		if !ok || f.Bytes != want {
			t.Errorf("%d bytes become %d, want %d", bytes, f.Bytes, want)
		}
	}
}

type once struct{ bytes int64 }

func (o once) Next() (workload.Flow, bool)                          { return workload.Flow{Bytes: o.bytes}, true }
func (once) Done(workload.Flow, time.Duration, func(workload.Flow)) {}

func TestMixed_tellsMiceFromElephants(t *testing.T) {
	var m mixed
	on := m.ended(10 * time.Millisecond)
	flow := func(class uint8, start time.Duration, bytes int64) {
		on(sim.FlowEnd{Flow: workload.Flow{Class: class, Start: start, Bytes: bytes}, FCT: time.Millisecond})
	}
	flow(mouse, 0, mouseBytes) // too early
	flow(mouse, 20*time.Millisecond, mouseBytes)
	flow(elephant, 20*time.Millisecond, 125_000) // 1 Gbit/s
	flow(elephant, 20*time.Millisecond, 62_500)
	if len(m.mice) != 1 || m.mice[0] != 1000 || m.throughput() != 750 {
		t.Errorf("mice %v, elephants %v Mbit/s", m.mice, m.throughput())
	}
	// Two hosts' endless elephants: what was delivered, less a mouse.
	top := parse(t, "leaf-spine:leaves=2,spines=2,hosts=1")
	one := &mixed{mice: []float64{1}}
	one.endless(top, &sim.Result{DeliveredBytes: []int64{mouseBytes, 250_000}}, &mixed{mice: one.mice}, time.Millisecond)
	if got := one.throughput(); math.Abs(got-1000) > 1e-9 {
		t.Errorf("%v Mbit/s, want 1000", got)
	}
}

func TestAsked_isATenthOfATenth(t *testing.T) {
	top := parse(t, scaledUp)
	s, err := asked(top, 3*incastEvery)(1)
	if err != nil {
		t.Fatal(err)
	}
	type burst struct {
		clients map[topology.NodeID]int
		bytes   int64
	}
	bursts := map[time.Duration]*burst{}
	for f, ok := s.Next(); ok; f, ok = s.Next() {
		b := bursts[f.Start]
		if b == nil {
			b = &burst{clients: map[topology.NodeID]int{}}
			bursts[f.Start] = b
		}
		b.clients[f.Dst]++
		b.bytes += f.Bytes
		if f.Bytes != incastBytes || f.Src == f.Dst {
			t.Fatalf("%+v", f)
		}
	}
	if len(bursts) != 3 {
		t.Fatalf("%d bursts, want 3", len(bursts))
	}
	for at, b := range bursts {
		if len(b.clients) != 32 || b.bytes != 32*32*incastBytes {
			t.Errorf("at %v %d hosts ask for %d bytes", at, len(b.clients), b.bytes)
		}
	}
}

func TestGrid_compares(t *testing.T) {
	of := func(us float64) *flows { return &flows{us: []float64{us}, result: new(sim.Result)} }
	g := grid{loads: []float64{.3, .8}, schemes: []scheme{ecmp, drill}, all: []*flows{of(10), of(9), of(32), of(20)}}
	if r := g.below(.8, drill, ecmp, "", (*flows).mean, 1.6); math.Abs(r.Ours-1.6) > 1e-9 || !r.OK || r.Label != "ECMP by DRILL, load 0.8" {
		t.Errorf("%+v", r)
	}
	if r := g.below(.3, drill, ecmp, "", (*flows).mean, 1.6); r.OK {
		t.Errorf("1.11 agrees with 1.6: %+v", r)
	}
	rows := best(&g, []scheme{drill}, []scheme{ecmp})
	if len(rows) != 1 || !rows[0].OK || !strings.Contains(rows[0].Label, "ECMP > DRILL") {
		t.Errorf("%+v", rows)
	}
	if rows := best(&g, []scheme{ecmp}, []scheme{drill}); rows[0].OK {
		t.Error("ECMP is best")
	}
	c := g.curves("", "", (*flows).mean)
	if len(c.Lines) != 2 || c.Lines[1].Y[0] != 9 || c.Lines[1].Y[1] != 20 {
		t.Errorf("%+v", c)
	}
}

// All schemes of a trial face the same flows, and the shim is on where it should.
func TestTrial_config(t *testing.T) {
	top := parse(t, slow)
	for _, s := range []scheme{ecmp, drill, drill.bare(), presto, drill.with(1, 20, 48)} {
		c, err := trial{top: top, scheme: s, load: .5, arrivals: time.Millisecond}.config(papers.Options{Seed: 3}, func(sim.FlowEnd) {})
		if err != nil {
			t.Fatal(err)
		}
		first, _ := c.Workload.Next()
		other, err := between(top, quarter, sizes, .5, time.Millisecond, 3)
		if err != nil {
			t.Fatal(err)
		}
		if want, _ := (wholeSegments{other}).Next(); first != want {
			t.Errorf("%s begins with %+v, want %+v", s.name, first, want)
		}
		if shim := c.Resequencer != nil; shim != s.restores {
			t.Errorf("%s: shim %v", s.name, shim)
		} else if shim && c.Resequencer.Hold != 2400*time.Microsecond {
			t.Errorf("%s holds for %v at 1 Gbit/s", s.name, c.Resequencer.Hold)
		}
		if c.Spray.DrillEngines != s.engines || c.Policy != s.policy || c.Queues[0].Bytes != 150_000 {
			t.Errorf("%s: %+v", s.name, c)
		}
	}
}
