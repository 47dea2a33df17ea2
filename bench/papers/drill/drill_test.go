package drill

import (
	"math"
	"strings"
	"testing"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
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
		s, err := between(top, traffic{who, sizes, alone}, load, until, 1)
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
	if _, err := between(top, traffic{"nobody", sizes, alone}, .5, time.Second, 1); err == nil {
		t.Error("nobody sends")
	}
	for name, part := range smallFlows {
		c, err := cdf(name)
		if err != nil || math.Abs(c.Part(segment)-part) > 1e-9 {
			t.Errorf("%s: %v of one segment, %v", name, c.Part(segment), err)
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

func TestAsked_isATenthOfATenth(t *testing.T) {
	top := parse(t, scaledUp)
	s, err := asked(papers.Options{}, top, 3*incastEvery)(1)
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
		other, err := between(top, traffic{quarter, sizes, alone}, .5, time.Millisecond, 3)
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
