package spray

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/backlog"
	"weft/conga"
	"weft/flowcell"
	"weft/luopan"
	"weft/policy"
	"weft/topology"
)

// Hosts under luopan are luopan.Tables and nothing else: one that is driven by hand
// chooses and asks the same.
func TestSampled_isLuopansTable(t *testing.T) { sameAsLuopansTable(t, false) }

// By samples alone the table is not told what is sent.
func TestSampled_samplesOnly(t *testing.T) { sameAsLuopansTable(t, true) }

func sameAsLuopansTable(t *testing.T, samplesOnly bool) {
	const seed = 21
	topo := parse(t, "leaf-spine:leaves=4,spines=4,hosts=4,host-rate=40000,fabric-rate=10000")
	h := newHosts(t, HostsConfig{Topology: topo, Policy: "luopan", Options: policy.Options{FlowcellBytes: 1460, Samples: 2}, SamplesOnly: samplesOnly, Seed: seed})
	bare, err := luopan.New(luopan.Config{SamplesOnly: samplesOnly, Samples: 2, Budget: probeBudget, RateBits: 10e9, Seed: mix(seed, 0)})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	flows := make([]Flow, 3)
	dst := []topology.NodeID{5, 9, 13}
	for i := range flows {
		h.Open(&flows[i], 0, dst[i], tuple(0, dst[i], i))
	}
	all := []int{0, 1, 2, 3}
	type question struct {
		Probe
		at time.Duration
	}
	var asked []question
	sampled := 0
	for step := range 4000 {
		now := time.Duration(step) * 5 * time.Microsecond
		var got, want []Probe
		h.Probes(now, func(p Probe) { got = append(got, p) })
		bare.Probes(now, func(p luopan.Probe) {
			want = append(want, Probe{Owner: 0, Dst: topology.NodeID(p.Host), Path: p.Path, Token: p.Token})
		})
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, step %d: probes %v, want %v", seed, step, got, want)
		}
		for _, p := range got {
			asked = append(asked, question{p, now})
		}
		for len(asked) > 0 && now-asked[0].at > 30*time.Microsecond {
			p := asked[0].Probe
			asked = asked[1:]
			if rng.IntN(10) == 0 {
				continue // lost
			}
			queue := 20 * p.Path
			h.Answer(p, queue, 2, now)
			bare.Answer(luopan.Answer{Token: p.Token, Path: p.Path, Queue: uint8(queue), Meters: 2}, uint32(p.Dst), now)
		}
		i := rng.IntN(len(flows))
		path, _ := h.Data(&flows[i], 0, 1460, 1500, now)
		rack := uint32(h.shape.edgeOf(dst[i]))
		p, ok := bare.Choose(rack, uint32(dst[i]), all, now)
		if !samplesOnly {
			bare.Sent(rack, p, 1500)
		}
		if path != p {
			t.Fatalf("seed %d, step %d: path %d, want %d", seed, step, path, p)
		}
		if ok {
			sampled++
		}
		if h.Next() > bare.Next() {
			t.Fatalf("seed %d, step %d: next at %v, want %v", seed, step, h.Next(), bare.Next())
		}
	}
	if sampled < 1000 {
		t.Errorf("samples have decided only %d times", sampled)
	}
}

// Hosts of a rack share one table, whose probes go from edge switch to edge switch.
func TestSampled_byRack(t *testing.T) {
	h := newHosts(t, HostsConfig{Topology: parse(t, leafSpine), Policy: "luopan", RackSamples: true, Seed: 2})
	var a, b Flow
	h.Open(&a, 4, 12, tuple(4, 12, 1))
	h.Open(&b, 5, 13, tuple(5, 13, 1))
	send(h, &a, 1, 0)
	send(h, &b, 1, 0)
	var probes []Probe
	if h.Next() != 0 {
		t.Fatalf("next at %v", h.Next())
	}
	h.Probes(0, func(p Probe) { probes = append(probes, p) })
	if len(probes) != 2 {
		t.Fatalf("%d probes for one pair of racks", len(probes))
	}
	for _, p := range probes {
		if p.Owner != h.shape.edgeOf(4) || p.Dst != h.shape.edgeOf(12) {
			t.Errorf("probe %+v", p)
		}
		h.Answer(p, 10*p.Path, 2, 10*time.Microsecond)
	}
	best := min(probes[0].Path, probes[1].Path)
	if got := send(h, &b, 1, 9*time.Microsecond)[0]; got != send(h, &b, 1, 9*time.Microsecond)[0] {
		t.Errorf("a flowcell takes %d and another path", got)
	}
	var c Flow
	h.Open(&c, 6, 12, tuple(6, 12, 1))
	if got := send(h, &c, 1, 20*time.Microsecond)[0]; got != best {
		t.Errorf("a flowcell of another host of the rack takes %d, want %d", got, best)
	}
}

// Likewise the tables of package backlog.
func TestBacklogged_isLocalsTable(t *testing.T) {
	const seed = 22
	for _, name := range []string{"local", "drill"} {
		h := newHosts(t, HostsConfig{Topology: parse(t, leafSpine), Policy: name, Seed: seed})
		bare, err := backlog.New(backlog.Config{RateBits: 10e9, Seed: mix(seed, 3)})
		if err != nil {
			t.Fatal(err)
		}
		var f Flow
		h.Open(&f, 3, 14, tuple(3, 14, 1))
		var cutter flowcell.Cutter
		all, was := []int{0, 1, 2, 3}, -1
		for i := range 2000 {
			now := time.Duration(i) * time.Microsecond
			path, _ := h.Data(&f, uint32(1460*i), 1460, 1500, now)
			if _, begins := cutter.Next(h.policy.Unit, uint32(1460*i), 1460, 1, now); begins {
				was = bare.Choose(uint32(h.shape.edgeOf(14)), all, now)
			}
			bare.Sent(0, was, 1500, now)
			if path != was {
				t.Fatalf("%s: packet %d takes %d, want %d", name, i, path, was)
			}
		}
	}
}

// Two hosts of conga and a fabric in which path 2 is busy: what the receiver hears
// comes back, and later flowlets shun the path.
func TestInformed_hearsOfCongestion(t *testing.T) {
	h := newHosts(t, HostsConfig{Topology: parse(t, leafSpine), Policy: "conga", Seed: 4})
	var f Flow
	h.Open(&f, 0, 12, tuple(0, 12, 1))
	shunned := 0
	for i := range 400 {
		now := time.Duration(i) * ms // each a flowlet
		path, _ := h.Data(&f, uint32(1460*i), 1460, 1500, now)
		m := h.DataMark(&f, path, now)
		if !m.Forward || m.Feedback || m.CE != 0 || int(m.Tag) != path {
			t.Fatalf("flowlet %d by path %d: mark %+v", i, path, m)
		}
		if path == 2 {
			m.CE = 6
		}
		h.Received(&f, m, false, now)
		back := h.AckMark(&f, now)
		if !back.Feedback || back.Forward || back.FbTag != m.Tag || back.FbMetric != m.CE {
			t.Fatalf("%+v reported as %+v", m, back)
		}
		h.Received(&f, back, true, now)
		if path != 2 {
			shunned++
		}
	}
	if shunned < 380 {
		t.Errorf("only %d of 400 flowlets shun a busy path", shunned)
	}
}

// Who has data for those who send to him reports in every other packet.
func TestDataMark_takesTurns(t *testing.T) {
	h := newHosts(t, HostsConfig{Topology: parse(t, leafSpine), Policy: "conga", Seed: 4})
	var f, back Flow
	h.Open(&f, 0, 12, tuple(0, 12, 1))
	h.Open(&back, 12, 0, tuple(12, 0, 2))
	for i := range 10 {
		h.Received(&f, Mark{Forward: true, Tag: uint8(i % 4), CE: 3}, false, 0)
		path, _ := h.Data(&back, uint32(1460*i), 1460, 1500, 0)
		if m := h.DataMark(&back, path, 0); m.Feedback != (i%2 == 0) || m.Forward == m.Feedback {
			t.Errorf("packet %d: mark %+v", i, m)
		}
	}
}

func TestMeters_areDREs(t *testing.T) {
	topo := parse(t, "leaf-spine:leaves=2,spines=2,hosts=2,host-rate=10000,fabric-rate=40000,e0.0-a0.1=10000")
	m := NewMeters(topo, 0)
	rng := rand.New(rand.NewPCG(1, 0))
	bare := make([]conga.DRE, 2*topo.NumLinks())
	for i := range bare {
		bare[i] = conga.NewDRE(160*time.Microsecond, topo.Rate(topology.LinkID(i/2))*1e6)
	}
	busy := 0
	for i := range 5000 {
		now := time.Duration(i) * 300
		port := int32(rng.IntN(2 * topo.NumLinks()))
		mark := Mark{Forward: rng.IntN(4) > 0, CE: uint8(rng.IntN(3))}
		want := mark.CE
		if int(port) >= 2*topo.NumHosts() {
			bare[port].Add(1500, now)
			if ce := bare[port].Metric(now); mark.Forward && ce > want {
				want = ce
				busy++
			}
		}
		m.Pass(port, 1500, &mark, now)
		if mark.CE != want {
			t.Fatalf("port %d at %v: CE %d, want %d", port, now, mark.CE, want)
		}
	}
	if busy < 100 {
		t.Errorf("a mark was raised only %d times", busy)
	}
}
