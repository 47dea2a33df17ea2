package simfile

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func parseText(t *testing.T, text string) *File {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "graph.yaml", graphText)
	write(t, dir, "sizes.txt", "1000 0.5\n9000 1\n")
	f, err := Parse([]byte(text), filepath.Join(dir, "own.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func results(t *testing.T, f *File, jobs int) []Result {
	t.Helper()
	r, err := f.Run(t.Context(), jobs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRun_doesNotDependOnJobs(t *testing.T) {
	f := parseText(t, good+"seeds: 2\nwarmup: 1ms\n")
	one, two := results(t, f, 1), results(t, f, 3)
	if a, b := asJSON(t, one), asJSON(t, two); a != b {
		t.Errorf("-j 1: %s\n-j 3: %s", a, b)
	}
	f.Seed = 7
	if other := results(t, f, 1); asJSON(t, other[0].P50Ms) == asJSON(t, one[0].P50Ms) {
		t.Error("the seed changes nothing")
	}
	for i, r := range one {
		if want := []float64{0.2, 0.5}[i/2]; r.Policy != []string{"ecmp", "drb"}[i%2] || *r.Load != want {
			t.Errorf("result %d is of %s at %v", i, r.Policy, *r.Load)
		}
	}
	// Policies see the same flows.
	if one[0].Flows != one[1].Flows || one[2].Flows != one[3].Flows || one[0].Flows >= one[2].Flows {
		t.Errorf("flows: %d, %d, then %d, %d", one[0].Flows, one[1].Flows, one[2].Flows, one[3].Flows)
	}
}

// A flow that is alone takes what its bytes, headers and hops do.
func TestRun_aFlowAlone(t *testing.T) {
	f := parseText(t, strings.NewReplacer(listOf("", "  list: [{at: 1ms, from: h0.0.2, to: h0.1.3, bytes: 1460}]")...).Replace(good)+"delay: 10us\n")
	for _, r := range results(t, f, 1) {
		want := (4 * (10 + 1500*8/1000.)) / 1e3 // links of 1 Gbit/s, store and forward
		if r.Flows != 1 || r.Unfinished != 0 || r.Load != nil || r.P99Ms != nil || r.MeanMs < want*.999 || r.MeanMs > want*1.001 || r.LastMs < 1+want*.999 || r.LastMs > 1+want*1.001 {
			t.Errorf("%s: %+v; want %v ms", r.Policy, r, want)
		}
	}
}

func TestRun_everyMatrix(t *testing.T) {
	const graph = "topology: graph.yaml"
	together := "  arrivals: together\n"
	fixed := []string{"{cdf: websearch_dctcp, scale: 0.01}", "{fixed_bytes: 20000}"}
	for _, c := range []struct {
		change []string
		flows  int // of each policy under the first load; 0: any
	}{
		{[]string{"other-racks", "uniform"}, 0},
		{[]string{"cdf: websearch_dctcp, scale: 0.01", "file: sizes.txt, truncate_bytes: 5000"}, 0},
		{[]string{"other-racks", "other-pods", "leaf-spine:leaves=2,spines=2,hosts=2,host-rate=1000,fabric-rate=1000", "fat-tree:k=4,host-rate=100,fabric-rate=100,core-rate=100"}, 0},
		{[]string{"other-racks", "permutation"}, 0},
		{[]string{"other-racks", "permutation", "  arrivals: poisson\n  loads: [0.2, 0.5]\n", together}, 4},
		{[]string{"other-racks", "permutation\n  rounds: 3\n  at_once: 2", "  arrivals: poisson\n  loads: [0.2, 0.5]\n", together}, 24},
		{[]string{"other-racks", "stride\n  stride: 1", "  arrivals: poisson\n  loads: [0.2, 0.5]\n", together + "  spread: 1ms\n"}, 4},
		{[]string{"other-racks", "staggered\n  rack: 0.2\n  pod: 0.3", "  arrivals: poisson\n  loads: [0.2, 0.5]\n", together}, 4},
		{[]string{"other-racks", "all-to-all"}, 0},
		{[]string{"other-racks", "all-to-all\n  at_once: 2", "  arrivals: poisson\n  loads: [0.2, 0.5]\n", together}, 12},
		{append([]string{"other-racks", "incast\n  servers: 3"}, fixed...), 0},
		{append([]string{"other-racks", "incast\n  servers: 3\n  jobs: 2", "  arrivals: poisson\n  loads: [0.2, 0.5]\n", together}, fixed...), 6},
		{[]string{"topology: " + strings.SplitN(good[len("topology: "):], "\n", 2)[0], graph}, 0},
		{[]string{"topology: " + strings.SplitN(good[len("topology: "):], "\n", 2)[0], graph, "other-racks", "all-to-all", "  arrivals: poisson\n  loads: [0.2, 0.5]\n", together}, 6},
		{append([]string{"topology: " + strings.SplitN(good[len("topology: "):], "\n", 2)[0], graph, "other-racks", "incast\n  servers: 2"}, fixed...), 0},
	} {
		text := good
		for i := 0; i < len(c.change); i += 2 {
			if !strings.Contains(text, c.change[i]) {
				t.Fatalf("%q: nothing to change", c.change)
			}
			text = strings.ReplaceAll(text, c.change[i], c.change[i+1])
		}
		text = strings.ReplaceAll(text, "duration: 5ms", "duration: 20ms") // small flows on slow links
		for _, r := range results(t, parseText(t, text), 1) {
			if r.Flows == 0 || c.flows > 0 && r.Flows != c.flows || r.Unfinished > 0 || r.GoodputMbit <= 0 || r.PacketHops == 0 {
				t.Errorf("%q: %+v", c.change, r)
			}
			if jobs := strings.Contains(text, "incast"); jobs != (r.Jobs > 0) || jobs != (r.JobMeanMs != nil) || jobs && *r.JobMeanMs < r.MeanMs {
				t.Errorf("%q: %d jobs, %+v", c.change, r.Jobs, r)
			}
		}
	}
}

// No host of a rack is drawn for one of the same, on a graph as on a computed fabric.
func TestFabric_otherRack(t *testing.T) {
	f := parseText(t, strings.Replace(good, strings.SplitN(good, "\n", 2)[0], "topology: graph.yaml", 1))
	source, err := f.plan.source(1, 3)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[[2]int]bool)
	for range 200 {
		flow, ok := source.Next()
		if !ok {
			break
		}
		seen[[2]int{int(flow.Src), int(flow.Dst)}] = true
	}
	third := 0 // h3's number: the rack of its own
	if h, err := f.plan.fabric.host("h3"); err == nil {
		third = int(h)
	}
	if len(seen) != 4 {
		t.Errorf("pairs: %v", seen)
	}
	for pair := range seen {
		if (pair[0] == third) == (pair[1] == third) {
			t.Errorf("%v are in one rack", pair)
		}
	}
}

// A failure that nobody learns of costs time, and one of the only link of no flow does not.
func TestRun_failures(t *testing.T) {
	text := strings.NewReplacer(append(listOf("", "  list: [{from: h0.0.2, to: h0.1.3, bytes: 200000}]"), "[ecmp, drb]", "[drb]")...).Replace(good)
	whole := results(t, parseText(t, text), 1)[0]
	failed := results(t, parseText(t, text+"failures:\n- {at: 0s, links: [e0.0-a0.0], told: 500ms}\n"), 1)[0]
	told := results(t, parseText(t, text+"failures:\n- {at: 0s, links: [e0.0-a0.0]}\n"), 1)[0]
	if whole.Drops+whole.Retransmits != 0 || failed.Retransmits == 0 || failed.MeanMs <= whole.MeanMs || told.MeanMs >= failed.MeanMs {
		t.Errorf("whole %+v\nfailed %+v\ntold %+v", whole, failed, told)
	}
}

func TestRun_countsWhatDoesNotEnd(t *testing.T) {
	text := strings.NewReplacer(listOf("", "  list: [{from: h0.0.2, to: h0.1.3, bytes: 100000000}, {at: 2ms, from: h0.0.3, to: h0.1.2, bytes: 1000}]")...).Replace(good)
	for _, r := range results(t, parseText(t, text+"drain: 1ms\n"), 1) {
		if r.Flows != 2 || r.Unfinished != 1 || r.MaxMs != 6 {
			t.Errorf("%+v", r)
		}
	}
	for _, r := range results(t, parseText(t, text+"drain: 1ms\nwarmup: 1ms\n"), 1) {
		if r.Flows != 1 || r.Unfinished != 0 {
			t.Errorf("after the warm-up: %+v", r)
		}
	}
}

func TestRun_ends(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := parseText(t, good).Run(ctx, 1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestCharts(t *testing.T) {
	r := results(t, parseText(t, good), 1)
	charts := Charts(r)
	if len(charts) != 4 || len(charts[0].Lines) != 2 || charts[0].Title != "Completion times at load 0.2" || charts[3].Title != "Goodput at load 0.5" {
		t.Errorf("%d charts: %+v", len(charts), charts)
	}
	for _, c := range charts {
		for _, l := range c.Lines {
			for i := 1; i < len(l.X); i++ {
				if l.X[i] < l.X[i-1] || l.Y[i] <= l.Y[i-1] || l.Y[i] > 1 {
					t.Errorf("%s, %s: point %d is %v, %v", c.Title, l.Name, i, l.X[i], l.Y[i])
				}
			}
		}
	}
}
