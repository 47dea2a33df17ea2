package thesis

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"weft/bench/papers"
	"weft/hedera"
	"weft/topology"
)

func quick(t *testing.T, e papers.Experiment, jobs int, seed uint64) *papers.Outcome {
	t.Helper()
	out, err := e.Run(context.Background(), papers.Options{Quick: true, Jobs: jobs, Seed: seed})
	if err != nil {
		t.Fatalf("%s: %v", e.Name, err)
	}
	return out
}

// fewMappings are orders of means that are a few percent apart, for which the 5 and 20
// mappings of a small run are too few; and those that the full run denies as well.
var fewMappings = []string{
	"staggered(0.5, 0.3): flow scheduler > flow classifier > tree > two-level table",
	"staggered(0.2, 0.3): flow scheduler > flow classifier > two-level table > tree",
	"random, not bijective: non-blocking > SA = GFF > ECMP",
	"total time, s: ECMP > SA = GFF > non-blocking",
	"mean time of a host, s: ECMP > SA > GFF > non-blocking",
	"bisection bandwidth, Gbit/s: non-blocking > GFF > SA > ECMP",
	"goodput of a host, MB/s: non-blocking > GFF > SA > ECMP",
}

// The thesis' orders hold in small, too.
func TestExperiments_quickly(t *testing.T) {
	names := make(map[string]bool)
	for _, e := range Experiments() {
		if names[e.Name] || e.Source == "" || e.Title == "" || len(e.Setting) == 0 {
			t.Errorf("%q: a name of its own, source, title and setting are needed", e.Name)
		}
		names[e.Name] = true
		for _, p := range e.Setting {
			if p.Chosen != (p.Why != "") {
				t.Errorf("%s: %s: what is chosen has a reason, what is stated none", e.Name, p.Name)
			}
		}
		one := quick(t, e, 1, 1)
		if len(one.Rows) == 0 || len(one.Settings) == 0 {
			t.Errorf("%s: %d rows, %d settings of a quick run", e.Name, len(one.Rows), len(one.Settings))
		}
		for _, r := range one.Rows {
			if r.Metric == "order" && !r.OK && !slices.Contains(fewMappings, r.Label) {
				t.Errorf("%s: does not hold: %s", e.Name, r.Label)
			}
		}
	}
}

// Worst cases are bijections between pods, in which tables give half.
func TestWorstCases_halveWhatTablesGive(t *testing.T) {
	top, f, err := fabricOf(clickTree)
	if err != nil {
		t.Fatal(err)
	}
	different := false
	var last []topology.NodeID
	for _, p := range []pattern{interPodIncoming, sameIDOutgoing} {
		for seed := range uint64(50) {
			to, err := p.make(top, seed)
			if err != nil {
				t.Fatal(err)
			}
			from := make(map[topology.NodeID]bool)
			for src, dst := range to {
				if f.Pod(topology.NodeID(src)) == f.Pod(dst) {
					t.Fatalf("%s, seed %d: %d to %d within a pod", p.name, seed, src, dst)
				}
				from[dst] = true
			}
			if len(from) != len(to) {
				t.Fatalf("%s, seed %d: %v is not one to one", p.name, seed, to)
			}
			if got := arriving(f, byPaths(f, to, f.TwoLevel)); got != .5 {
				t.Errorf("%s, seed %d: %v arrives, want half", p.name, seed, got)
			}
			different = different || last != nil && !reflect.DeepEqual(last, to)
			last = to
		}
	}
	if !different {
		t.Error("all seeds give one mapping")
	}
	if _, err := interPodIncoming.make(parse(t, fatTree(6)), 1); err == nil {
		t.Error("54 hosts: no error")
	}
}

func parse(t *testing.T, spec string) *topology.Topology {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// By the tree's rates of the thesis, what leaves a pod gets 106.67 of 384.
func TestMethods_treeOfTheThesis(t *testing.T) {
	_, f, err := fabricOf(hierarchy)
	if err != nil {
		t.Fatal(err)
	}
	for by, want := range map[int]float64{1: 1, 2: (2*96 + 106.67) / 384, 4: 106.67 / 384, 8: 106.67 / 384} {
		to, err := stride(by).make(parse(t, clickTree), 0)
		if err != nil {
			t.Fatal(err)
		}
		got := arriving(f, byPaths(f, to, func(hedera.Pair) int { return 0 }))
		if d := got - want; d > 1e-9 || d < -1e-9 {
			t.Errorf("stride(%d): %v arrives, want %v", by, got, want)
		}
	}
}

func TestExponential_hasItsMean(t *testing.T) {
	c, err := exponential(1e9)
	if err != nil {
		t.Fatal(err)
	}
	if m := c.Mean(); m < .99e9 || m > 1.01e9 {
		t.Errorf("mean %v, want 1e9", m)
	}
}
