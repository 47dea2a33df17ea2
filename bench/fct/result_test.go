package fct

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/bench/testbed"
	"weft/topology"
)

func TestIdeal_byHand(t *testing.T) {
	const base = 400 * time.Microsecond
	for _, c := range []struct {
		bytes int64
		mbit  float64
		want  time.Duration
	}{
		{1, 10, base},
		{2920, 10, base}, // two full packets, 3028 bytes: within the burst
		{2921, 10, base},
		{4380, 8, base + (4542-3200)*time.Microsecond}, // three of them, a byte each microsecond
		{4381, 8, base + (4597-3200)*time.Microsecond}, // and a fourth with one byte
		{1_460_000, 8, base + (1_514_000-3200)*time.Microsecond},
		{1_460_000, 80, base + (1_514_000-3200)*100*time.Nanosecond},
	} {
		if got := ideal(c.bytes, c.mbit, base); got != c.want {
			t.Errorf("%d bytes at %g Mbit/s: %v, want %v", c.bytes, c.mbit, got, c.want)
		}
	}
}

func TestHostsMbit_isTheSlowerHosts(t *testing.T) {
	top := parse(t, "leaf-spine:leaves=2,spines=2,hosts=1,host-rate=20,h0.0.2-e0.0=5")
	for _, f := range []workload.Flow{{Src: 0, Dst: 1}, {Src: 1, Dst: 0}} {
		if got := hostsMbit(top, f.Src, f.Dst, 10); got != 5 {
			t.Errorf("%g Mbit/s from %d to %d", got, f.Src, f.Dst)
		}
	}
	if got := hostsMbit(parse(t, "fat-tree:k=4"), 3, 9, 10); got != 10 {
		t.Errorf("%g Mbit/s without rates", got)
	}
}

func TestInClass_boundsScale(t *testing.T) {
	for _, c := range []struct {
		bytes           int64
		mice, elephants bool
	}{{999, true, false}, {1000, false, false}, {100_000, false, false}, {100_001, false, true}} {
		if inClass("mice", c.bytes, 0.01) != c.mice || inClass("elephants", c.bytes, 0.01) != c.elephants || !inClass("all", c.bytes, 0.01) {
			t.Errorf("%+v", c)
		}
	}
}

// Two seeds by hand: 100 mice of 1 to 100 ms, and one elephant that is unfinished.
func TestSummarise_byHand(t *testing.T) {
	one := run{idle: 40, tcp: tcpCounters{true, 3, 10}}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(100) {
		one.samples = append(one.samples, sample{bytes: 99_999, took: time.Duration(i+1) * time.Millisecond, ideal: 2 * time.Millisecond, begun: true, whole: true, finished: true})
	}
	one.samples = append(one.samples, sample{bytes: 20e6, took: 5 * time.Second, ideal: time.Second, begun: true, whole: true, finished: false})
	two := run{idle: 60, tcp: tcpCounters{true, 5, 30}, samples: []sample{{bytes: 1, took: 200 * time.Millisecond, ideal: 4 * time.Millisecond, begun: true, whole: true, finished: true}}}
	for class, want := range map[string]Result{
		// Means of the two seeds: the median of two. Percentiles of the first seed alone, as the second
		// has one sample.
		"mice":      {Flows: 101, MeanMs: (50.5 + 200) / 2, P50Ms: 125, P95Ms: new(95.), P99Ms: new(99.), MaxMs: 150, MeanLowMs: 50.5, MeanHighMs: 200, ConfidencePercent: 50, SlowdownP50: (25 + 50) / 2., SlowdownP99: new(49.5)},
		"elephants": {Flows: 1, Unfinished: 1, MeanMs: 5000, P50Ms: 5000, MaxMs: 5000, MeanLowMs: 5000, MeanHighMs: 5000, SlowdownP50: 5},
		// The elephant's time is the longest, but its slowdown is not.
		"all": {Flows: 102, Unfinished: 1, MeanMs: (10050./101 + 200) / 2, P50Ms: 125.5, P95Ms: new(96.), P99Ms: new(100.), MaxMs: 2600, MeanLowMs: 10050. / 101, MeanHighMs: 200, ConfidencePercent: 50, SlowdownP50: (25 + 50) / 2., SlowdownP99: new(49.5)},
	} {
		want.SizeClass, want.Scale, want.IdlePercent, want.Begun = class, 1, 40, want.Flows
		want.SYNRetransmits, want.Timeouts = 4, 20
		got := Result{SizeClass: class, Scale: 1}
		got.summarise([]run{one, two})
		if math.Abs(got.MeanMs-want.MeanMs) > 1e-9 {
			t.Errorf("%s: mean %v, want %v", class, got.MeanMs, want.MeanMs)
		}
		got.MeanMs = want.MeanMs
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, want\n%+v", class, got, want)
		}
	}
	none := Result{SizeClass: "elephants", Scale: 1}
	if none.summarise([]run{two}); !reflect.DeepEqual(none, Result{SizeClass: "elephants", Scale: 1, IdlePercent: 60, SYNRetransmits: 5, Timeouts: 30}) {
		t.Errorf("no elephants: %+v", none)
	}
}

// A percentile is one only if a sample is above it. In JSON it is null otherwise.
func TestSummarise_percentilesNeedSamples(t *testing.T) {
	of := func(n int) (r run) {
		for i := range n {
			r.samples = append(r.samples, sample{bytes: 1, took: time.Duration(i+1) * time.Millisecond, ideal: time.Millisecond, begun: true, whole: true, finished: true})
		}
		return r
	}
	for n, want := range map[int]string{
		19: "null null null null", 20: "19 null null null", 99: "95 null null null", 100: "95 99 null 99", 999: "950 990 null 990", 1000: "950 990 999 990",
	} {
		r := Result{SizeClass: "all", Scale: 1}
		r.summarise([]run{of(n)})
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(text, &keys); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %s %s %s", keys["p95_ms"], keys["p99_ms"], keys["p999_ms"], keys["slowdown_p99"]); got != want {
			t.Errorf("%d samples: %s, want %s", n, got, want)
		}
	}
	// A round that has too few does not count.
	r := Result{SizeClass: "all", Scale: 1}
	if r.summarise([]run{of(99), of(100), of(3)}); r.P99Ms == nil || *r.P99Ms != 99 {
		t.Errorf("%v", r.P99Ms)
	}
}

// A row is void if the processors were busier than the bound in any round, and not if nobody
// knows.
func TestSummarise_void(t *testing.T) {
	for _, c := range []struct {
		idle []float64
		want float64
		void bool
	}{{[]float64{50, 9, 60}, 9, true}, {[]float64{60, 50, 10}, 10, false}, {[]float64{-1}, -1, false}, {[]float64{-1, 40, -1}, 40, false}, {[]float64{0}, 0, true}} {
		var runs []run
		for _, idle := range c.idle {
			runs = append(runs, run{idle: idle})
		}
		r := Result{SizeClass: "all", Scale: 1}
		if r.summarise(runs); r.Void != c.void || r.IdlePercent != c.want {
			t.Errorf("idle %v: %g, void %v", c.idle, r.IdlePercent, r.Void)
		}
	}
}

// A class is void if one of its flows did not begin: those that begin late are the slowest ones'
// followers, and no figure contains them. So is a job of which a flow did not begin.
func TestSummarise_flowsThatDidNotBegin(t *testing.T) {
	p := plan{jobs: 1, after: []int{-1, 0}, flows: []workload.Flow{{Dst: 1, Bytes: 10}, {Dst: 1, Bytes: 20e6}}}
	var r run
	all := []outcome{{begun: true, took: time.Second}, {}}
	r.samples, r.jobs = p.samples(all, func(_, _ topology.NodeID, _ int64) time.Duration { return time.Second })
	r.idle = 50
	for class, want := range map[string]Result{
		"all":       {Flows: 2, Begun: 1, Unfinished: 2, MeanMs: 1000, Void: true},
		"mice":      {Flows: 1, Begun: 1, Unfinished: 1, MeanMs: 1000},
		"elephants": {Flows: 1, Unfinished: 1, Void: true},
		"jobs":      {Flows: 1, Begun: 1, Unfinished: 1, MeanMs: 1000, Void: true},
	} {
		got := Result{SizeClass: class, Scale: 1}
		got.summarise([]run{r})
		if got.Flows != want.Flows || got.Begun != want.Begun || got.Unfinished != want.Unfinished || got.MeanMs != want.MeanMs || got.Void != want.Void {
			t.Errorf("%s: %+v", class, got)
		}
	}
}

// A class is as sure as the rounds are many in which it has flows.
func TestSummarise_confidenceOfTheClass(t *testing.T) {
	mouse := sample{bytes: 1, took: time.Second, ideal: time.Second, begun: true, whole: true, finished: true}
	elephant := mouse
	elephant.bytes = 20e6
	runs := []run{{samples: []sample{mouse}}, {samples: []sample{mouse, elephant}}, {samples: []sample{mouse, elephant}}}
	for class, want := range map[string]float64{"mice": 75, "elephants": 50} {
		r := Result{SizeClass: class, Scale: 1}
		if r.summarise(runs); r.ConfidencePercent != want {
			t.Errorf("%s: %g %%", class, r.ConfidencePercent)
		}
	}
}

// The median of three seeds is one of them, whatever their order.
func TestSummarise_isTheMedianSeed(t *testing.T) {
	var runs []run
	for _, ms := range []time.Duration{30, 10, 20} {
		runs = append(runs, run{samples: []sample{{bytes: 1, took: ms * time.Millisecond, ideal: time.Millisecond, begun: true, whole: true, finished: true}}})
	}
	r := Result{SizeClass: "all", Scale: 1}
	if r.summarise(runs); r.MeanMs != 20 || r.P50Ms != 20 || r.SlowdownP50 != 20 || r.Flows != 3 {
		t.Errorf("%+v", r)
	}
}

func TestDoubts_whatTheMachineSpoils(t *testing.T) {
	var notes []string
	b := &bench{Options: &Options{Note: func(s string) { notes = append(notes, s) }}, runs: map[cell][]run{
		{0, 0}: {{idle: 50, late: time.Millisecond}, {idle: -1}},
		{1, 0}: {{idle: 10, late: lateness}},
	}}
	if b.doubts(); len(notes) != 0 {
		t.Errorf("%q", notes)
	}
	b.runs[cell{2, 0}] = []run{{idle: 9.9, late: time.Second}}
	b.doubts()
	if len(notes) != 2 || !strings.Contains(notes[0], "in 1 of 4 runs") || !strings.Contains(notes[1], "1s at most") {
		t.Errorf("%q", notes)
	}
}

func TestRows_whoBalances(t *testing.T) {
	want := map[string]Where{"kernel-ecmp": Kernel, "kernel-mptcp": Kernel, "kernel-drb": Host, "host-auto": Host, "gateway-presto": Host, "drb": Host, "ecmp": Host}
	for _, r := range Rows() {
		if w, ok := want[r.Name]; ok && w != r.Where {
			t.Errorf("%s: %s", r.Name, r.Where)
		}
		if (r.Where == Switch) != (r.Balance != "") {
			t.Errorf("%+v", r)
		}
		delete(want, r.Name)
	}
	if len(want) > 0 {
		t.Errorf("no rows %v", want)
	}
	if r := switchRow("drill"); r.Name != "switch-drill" || r.Where != Switch || r.Balance != "drill" || r.Hosts.Name != "kernel-ecmp" {
		t.Errorf("%+v", r)
	}
	mptcp, err := Select([]string{"kernel-mptcp:subflows=1", "kernel-mptcp:subflows=32", "kernel-bbr", "kernel-dctcp"})
	if err != nil || mptcp[0].Hosts.Subflows != 1 || mptcp[1].Hosts.Subflows != 32 || !mptcp[1].Hosts.MPTCP || mptcp[1].Where != Kernel ||
		mptcp[2].Hosts.Congestion != "bbr" || mptcp[2].MarkBytes != 0 || mptcp[3].MarkBytes == 0 {
		t.Errorf("%+v, %v", mptcp, err)
	}
	for _, bad := range []string{"kernel-mptcp:subflows=0", "kernel-mptcp:subflows=33", "kernel-mptcp:4", "kernel-mptcp:subflows=x"} {
		if _, err := Select([]string{bad}); err == nil || !strings.Contains(err.Error(), "1 to 32") {
			t.Errorf("%s: error %v", bad, err)
		}
	}
	rows, err := Select([]string{"switch-letflow:gap=60ms", "switch-letflow"})
	if err != nil || rows[0].Balance != "letflow:gap=60ms" || rows[0].Where != Switch || rows[1].Balance != "letflow" {
		t.Errorf("%+v, %v", rows, err)
	}
	if _, err := Select(DefaultRows); err != nil {
		t.Error(err)
	}
	if _, err := Select([]string{"drb", "best"}); err == nil {
		t.Error("no error of an unknown row")
	}
	if _, err := Select([]string{"drb", "ecmp", "drb"}); err == nil {
		t.Error("no error of a row that is there twice")
	}
}

// A row whose fabric cannot be built, one that cannot run and one that fails have results that say
// so, and no figures. The others have theirs. A fabric is tried once.
func TestRun_rowsWithErrors(t *testing.T) {
	rows, err := Select([]string{"drb", "switch-drill", "switch-rb", "kernel-ecmp", "presto"})
	if err != nil {
		t.Fatal(err)
	}
	rows = append(rows, rows[1])
	opened, notes := 0, ""
	top := parse(t, "leaf-spine:leaves=2,spines=2,hosts=2")
	o := Options{Topology: top, RateMbit: 10, Rows: rows, Workload: "websearch_dctcp", Scale: 0.002, Traffic: "random",
		Loads: []float64{0.3}, Seed: 1, Seeds: 2, Duration: 100 * time.Millisecond, Drain: time.Minute,
		Note: func(s string) { notes += s + "\n" },
		Open: func(_ context.Context, f Fabric) (testbed.Testbed, error) {
			opened++
			if f.Balance != "" {
				return nil, errors.New("no " + f.Balance + " here")
			}
			return failing{testbed.InMemory(testbed.Config{Topology: top, RateMbit: 10, Seed: 1})}, nil
		}}
	results, err := Run(t.Context(), o)
	if err != nil || opened != 3 || len(results) != len(rows)*len(sizeClasses) {
		t.Fatalf("%v, %d fabrics, %d results", err, opened, len(results))
	}
	if strings.Count(notes, "has no figures") != 5 || !strings.Contains(notes, "presto has no figures: presto starts no more\n") {
		t.Errorf("%q", notes)
	}
	for i, r := range results {
		row := rows[i/len(sizeClasses)].Name
		want := map[string]string{"switch-drill": "no drill here", "switch-rb": "no rb here", "kernel-ecmp": "in network namespaces only", "presto": "starts no more"}[row]
		switch {
		case r.Policy != row || !strings.Contains(r.Error, want) || (r.Error == "") != (want == ""):
			t.Errorf("%s: %+v", row, r)
		case want != "" && (r.Flows != 0 || r.P99Ms != nil || r.MeanMs != 0):
			t.Errorf("%s has figures: %+v", row, r)
		case want == "" && r.SizeClass == "all" && (r.Flows == 0 || r.MeanMs == 0 || r.SlowdownBase != labBase || r.BaseByteMs <= 0):
			t.Errorf("%s has none: %+v", row, r)
		}
	}
}

// failing starts no host by presto.
type failing struct{ testbed.Testbed }

func (f failing) Start(ctx context.Context, r testbed.Row) (*testbed.Session, error) {
	if r.Name == "presto" {
		return nil, errors.New("presto starts no more")
	}
	return f.Testbed.Start(ctx, r)
}

// Of a row that fails in a later round nothing is left, and it runs no more.
func TestFail_takesTheFigures(t *testing.T) {
	b := &bench{Options: &Options{Rows: make([]Row, 2), Loads: []float64{0.1, 0.2}}, errs: make([]error, 2), runs: map[cell][]run{
		{0, 0}: {{}}, {0, 1}: {{}}, {1, 0}: {{}}, {1, 1}: {{}}}}
	b.fail([]int{1}, errors.New("broken"))
	if len(b.runs) != 2 || b.runs[cell{0, 1}] == nil || !slices.Equal(b.order(0), []int{0}) {
		t.Errorf("%v, %v", b.runs, b.order(0))
	}
}

func TestOrder_alternates(t *testing.T) {
	b := &bench{Options: &Options{Rows: make([]Row, 3)}, errs: make([]error, 3)}
	if a, z := b.order(0), b.order(1); !slices.Equal(a, []int{0, 1, 2}) || !slices.Equal(z, []int{2, 1, 0}) {
		t.Errorf("%v, %v", a, z)
	}
}
