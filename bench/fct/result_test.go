package fct

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
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
		// means of the two seeds: the median of two
		"mice":      {Flows: 101, MeanMs: (50.5 + 200) / 2, P50Ms: 125, P95Ms: 147.5, P99Ms: (99 + 200) / 2., P999Ms: 150, MaxMs: 150, MeanLowMs: 50.5, MeanHighMs: 200, ConfidencePercent: 50, SlowdownP50: (25 + 50) / 2., SlowdownP99: (49.5 + 50) / 2},
		"elephants": {Flows: 1, Unfinished: 1, MeanMs: 5000, P50Ms: 5000, P95Ms: 5000, P99Ms: 5000, P999Ms: 5000, MaxMs: 5000, MeanLowMs: 5000, MeanHighMs: 5000, SlowdownP50: 5, SlowdownP99: 5},
		// The elephant's time is the longest, but its slowdown is not.
		"all": {Flows: 102, Unfinished: 1, MeanMs: (10050./101 + 200) / 2, P50Ms: 125.5, P95Ms: 148, P99Ms: (100 + 200) / 2., P999Ms: 2600, MaxMs: 2600, MeanLowMs: 10050. / 101, MeanHighMs: 200, ConfidencePercent: 50, SlowdownP50: (25 + 50) / 2., SlowdownP99: (49.5 + 50) / 2},
	} {
		want.SizeClass, want.Scale, want.IdlePercent, want.Begun = class, 1, 40, want.Flows
		want.SYNRetransmits, want.Timeouts = 4, 20
		got := Result{SizeClass: class, Scale: 1}
		got.summarise([]run{one, two})
		if math.Abs(got.MeanMs-want.MeanMs) > 1e-9 {
			t.Errorf("%s: mean %v, want %v", class, got.MeanMs, want.MeanMs)
		}
		got.MeanMs = want.MeanMs
		if got != want {
			t.Errorf("%s:\n%+v, want\n%+v", class, got, want)
		}
	}
	none := Result{SizeClass: "elephants", Scale: 1}
	if none.summarise([]run{two}); none != (Result{SizeClass: "elephants", Scale: 1, IdlePercent: 60, SYNRetransmits: 5, Timeouts: 30}) {
		t.Errorf("no elephants: %+v", none)
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
	if r.summarise(runs); r.MeanMs != 20 || r.P99Ms != 20 || r.SlowdownP50 != 20 || r.Flows != 3 {
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

// Of a fabric that cannot be built the rows are left out, the others run. It is tried once.
func TestSupported_withoutAFabric(t *testing.T) {
	rows, err := Select([]string{"drb", "switch-drill", "switch-rb", "kernel-ecmp"})
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	opened := 0
	o := Options{Rows: append(rows, rows[1]), Note: func(s string) { notes = append(notes, s) },
		Open: func(_ context.Context, f Fabric) (testbed.Testbed, error) {
			opened++
			if f.Balance != "" {
				return nil, errors.New("no " + f.Balance + " here")
			}
			return testbed.InMemory(testbed.Config{}), nil
		}}
	b := &bench{Options: &o, beds: make(map[Fabric]testbed.Testbed), unbuilt: make(map[Fabric]error)}
	if err := b.supported(t.Context()); err != nil || len(b.Rows) != 1 || b.Rows[0].Name != "drb" || opened != 3 {
		t.Errorf("%v, %d fabrics, %+v", err, opened, b.Rows)
	}
	if len(notes) != 4 || notes[0] != "switch-drill is left out: no drill here" {
		t.Errorf("%q", notes)
	}
}

func TestOrder_alternates(t *testing.T) {
	b := &bench{Options: &Options{Rows: make([]Row, 3)}}
	if a, z := b.order(0), b.order(1); !slices.Equal(a, []int{0, 1, 2}) || !slices.Equal(z, []int{2, 1, 0}) {
		t.Errorf("%v, %v", a, z)
	}
}
