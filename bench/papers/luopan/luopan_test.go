package luopan

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/workload"
	"weft/topology"
)

func TestTimes_goToTheirBins(t *testing.T) {
	var s times
	for _, f := range []struct {
		bytes int64
		class uint8
	}{{1, background}, {mouse, background}, {mouse + 1, background}, {elephant, background}, {elephant + 1, background}, {2000, probe}, {2000, job}} {
		s.took(sim.FlowEnd{Flow: workload.Flow{Bytes: f.bytes, Class: f.class}, FCT: time.Duration(f.bytes) * time.Microsecond})
	}
	for name, c := range map[string]struct {
		got  []float64
		want int
	}{"mice": {s.mice, 2}, "medium": {s.medium, 2}, "elephants": {s.elephants, 1}, "all": {s.all, 5}, "probes": {s.probes, 1}} {
		if len(c.got) != c.want {
			t.Errorf("%s: %v, want %d", name, c.got, c.want)
		}
	}
	if s.mice[1] != mouse {
		t.Errorf("a flow of %d µs took %v", mouse, s.mice[1])
	}
}

func TestGrid_comparesLuopan(t *testing.T) {
	of := func(us float64) *times { return &times{all: []float64{us}} }
	g := grid{axis: "load", x: []float64{.2, .8}, schemes: []string{presto, luopanScheme}, all: []*times{of(100), of(90), of(200), of(101)}}
	changes := g.changes(overallMean, presto)
	if math.Abs(changes[0]+10) > 1e-9 || math.Abs(changes[1]+49.5) > 1e-9 {
		t.Errorf("changes %v, want -10 and -49.5", changes)
	}
	if r := g.upTo(overallMean, presto, -40); math.Abs(r.Ours+49.5) > 1e-9 || !r.OK {
		t.Errorf("up to: %+v", r)
	}
	if r := g.upTo(overallMean, presto, -30); r.OK {
		t.Errorf("a change of -49.5 is not within half of -30: %+v", r)
	}
	for _, c := range []struct {
		us float64 // luopan's at load 0.2, where presto's are 100; at 0.8 it is 49.5 % below
		ok bool
	}{{90, true}, {147, true}, {149, false}, {160, false}} {
		g.all[1] = of(c.us)
		if got := g.better(overallMean, presto); got.OK != c.ok || got.Kind != papers.KindOrder {
			t.Errorf("%v µs: OK is %v, want %v", c.us, got.OK, c.ok)
		}
	}
	// Everywhere is at each point.
	for us, ok := range map[float64]bool{90: true, 99.5: false, 110: false} {
		g.all[1] = of(us)
		if got := g.everywhere(overallMean, presto); len(got) != 2 || got[0].OK != ok || !got[1].OK || got[0].Kind != papers.KindOrder || got[1].Label != "all flows mean: luopan below presto, load 0.8" {
			t.Errorf("%v µs: %+v", us, got)
		}
	}
	g.all[1] = of(103)
	if rows := g.rows(overallMean, presto, within(bounds{-60, -45})); rows[0].OK || !rows[1].OK || rows[1].Label != "luopan vs presto, load 0.8" {
		t.Errorf("%+v", rows)
	}
}

func TestCut_takesLinksToCores(t *testing.T) {
	top, err := fatTree(6, oversub)
	if err != nil {
		t.Fatal(err)
	}
	if top.NumHosts() != 216 {
		t.Errorf("6 pods at 4:1 have %d hosts", top.NumHosts())
	}
	seen := map[string]bool{}
	for seed := range uint64(20) {
		broken, names := cut(top, 10, seed)
		down := broken.Down()
		if len(down) != 10 || len(strings.Fields(names)) != 10 {
			t.Fatalf("seed %d: %v down, named %s", seed, down, names)
		}
		for _, l := range down {
			if top.Node(top.Link(l).B).Layer != topology.LayerCore {
				t.Errorf("seed %d: %s is down", seed, top.LinkName(l))
			}
		}
		seen[names] = true
	}
	if len(seen) != 20 {
		t.Errorf("20 seeds make %d sets of links", len(seen))
	}
}

func TestTrial_schemesHaveTheSameFlows(t *testing.T) {
	top, _ := fatTree(4, oversub)
	sizes, _ := workload.LoadCDF(webSearch)
	flows := func(scheme string) (all []workload.Flow) {
		c, err := trial{top: top, scheme: scheme, sizes: sizes, load: .5, arrivals: 20 * time.Millisecond, probes: 100}.config(3, nil)
		if err != nil {
			t.Fatal(err)
		}
		for {
			f, ok := c.Workload.Next()
			if !ok {
				return all
			}
			all = append(all, f)
		}
	}
	a, b := flows(luopanScheme), flows(presto)
	small := 0
	for i, f := range a {
		if f != b[i] {
			t.Fatalf("flow %d is %+v, and %+v", i, f, b[i])
		}
		if f.Class == probe {
			small++
			if f.Start < 20*time.Millisecond/warm {
				t.Errorf("a probe begins at %v", f.Start)
			}
		}
	}
	if len(a) != len(b) || small < 60 || small > 140 {
		t.Errorf("%d and %d flows, %d probes", len(a), len(b), small)
	}
}

// Samples alone are another luopan than weft's, not another fabric or other flows.
func TestTrial_publishedGoesBySamplesAlone(t *testing.T) {
	top, _ := fatTree(4, oversub)
	sizes, _ := workload.LoadCDF(webSearch)
	var all [2]*sim.Result
	for i, scheme := range []string{luopanScheme, published} {
		c, err := trial{top: top, scheme: scheme, sizes: sizes, load: .8, arrivals: 3 * time.Millisecond}.config(3, func(sim.FlowEnd) {})
		if err != nil {
			t.Fatal(err)
		}
		if c.Policy != "luopan" || c.Options.Expiry != expiryTime || c.Options.Samples != sampled {
			t.Errorf("%s: %s, %+v", scheme, c.Policy, c.Options)
		}
		if all[i], err = sim.Run(c); err != nil {
			t.Fatal(err)
		}
	}
	if all[0].Flows != all[1].Flows || all[0].ProbePackets == 0 || all[1].ProbePackets == 0 {
		t.Errorf("flows %d and %d, probes %d and %d", all[0].Flows, all[1].Flows, all[0].ProbePackets, all[1].ProbePackets)
	}
	if slices.Equal(all[0].Ports, all[1].Ports) {
		t.Error("both take the same paths")
	}
}

func TestExperiments_sayWhatTheyAre(t *testing.T) {
	for _, e := range Experiments() {
		if !strings.HasPrefix(e.Name, "luopan-") || !strings.HasPrefix(e.Source, "Luopan §") || e.Title == "" || e.Run == nil {
			t.Errorf("%+v", e)
		}
		for _, p := range e.Setting {
			if p.Chosen != (p.Why != "") || p.Value == "" {
				t.Errorf("%s, %s: what is chosen has a reason, what the paper states has none", e.Name, p.Name)
			}
		}
	}
}
