package fct

import (
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
	two := run{idle: 60, tcp: tcpCounters{true, 5, 30}, samples: slices.Repeat([]sample{{bytes: 1, took: 200 * time.Millisecond, ideal: 4 * time.Millisecond, begun: true, whole: true, finished: true}}, 100)}
	for class, want := range map[string]Result{
		// Means of the two seeds: the median of two.
		"mice":      {Flows: 200, MeanMs: (50.5 + 200) / 2, P50Ms: 125, P95Ms: new((95. + 200) / 2), P99Ms: new((99. + 200) / 2), MaxMs: 150, MeanLowMs: 50.5, MeanHighMs: 200, ConfidencePercent: 50, SlowdownP50: (25 + 50) / 2., SlowdownP99: new((49.5 + 50) / 2)},
		"elephants": {Flows: 1, Unfinished: 1, MeanMs: 5000, P50Ms: 5000, MaxMs: 5000, MeanLowMs: 5000, MeanHighMs: 5000, SlowdownP50: 5},
		// The elephant's time is the longest, but its slowdown is not.
		"all": {Flows: 201, Unfinished: 1, MeanMs: (10050./101 + 200) / 2, P50Ms: 125.5, P95Ms: new((96. + 200) / 2), P99Ms: new((100. + 200) / 2), MaxMs: 2600, MeanLowMs: 10050. / 101, MeanHighMs: 200, ConfidencePercent: 50, SlowdownP50: (25 + 50) / 2., SlowdownP99: new((49.5 + 50) / 2)},
	} {
		want.SizeClass, want.Scale, want.IdlePercent, want.Begun = class, 1, 40, want.Flows
		want.SYNRetransmits, want.Timeouts, want.Rounds = 4, 20, 2
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
	if none.summarise([]run{two}); !reflect.DeepEqual(none, Result{SizeClass: "elephants", Scale: 1, IdlePercent: 60, SYNRetransmits: 5, Timeouts: 30, Rounds: 1}) {
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
	// All medians are of the same rounds: one that has too few samples takes the percentile away, and
	// one without flows counts for none.
	r := Result{SizeClass: "all", Scale: 1}
	if r.summarise([]run{of(1000), of(100), of(99)}); r.P95Ms == nil || *r.P95Ms != 95 || r.P99Ms != nil || r.SlowdownP99 != nil {
		t.Errorf("%+v", r)
	}
	r = Result{SizeClass: "all", Scale: 1}
	if r.summarise([]run{of(100), of(0), of(100), of(200)}); r.P99Ms == nil || *r.P99Ms != 99 || r.P999Ms != nil {
		t.Errorf("%+v", r)
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

// A round that failed has no figures, and is counted and told.
func TestSummarise_failedRounds(t *testing.T) {
	measured := run{idle: 50, samples: []sample{{bytes: 1, took: time.Second, ideal: time.Second, begun: true, whole: true, finished: true}}}
	fail := func(why string) run { return run{idle: -1, failed: errors.New(why)} }
	r := Result{SizeClass: "all", Scale: 1}
	if r.summarise([]run{measured, fail("first"), measured, fail("second")}); r.Rounds != 2 || r.Failed != 2 || r.Error != "round 2: first" || r.MeanMs != 1000 || r.Void || r.IdlePercent != 50 || r.ConfidencePercent != 50 {
		t.Errorf("%+v", r)
	}
	r = Result{SizeClass: "all", Scale: 1}
	if r.summarise([]run{fail("first"), fail("second")}); r.Rounds != 0 || r.Failed != 2 || r.Void || r.Flows != 0 || r.IdlePercent != -1 {
		t.Errorf("%+v", r)
	}
}

// A run in which connections of MPTCP lacked subflows does not measure what the row says.
func TestSummarise_lackingSubflows(t *testing.T) {
	r := Result{SizeClass: "all", Scale: 1}
	if r.summarise([]run{{idle: 50}, {idle: 50, lacking: "one subflow each"}}); !r.Void {
		t.Errorf("%+v", r)
	}
}

// Rows have the same classes, whether or not they were measured.
func TestResults_classesAreTheTraffics(t *testing.T) {
	for traffic, want := range map[string][]string{"random": sizeClasses, "incast(2)": append(slices.Clone(sizeClasses), jobsClass)} {
		o := simOptions(t, "kernel-ecmp")
		o.Traffic = traffic
		var got []string
		for _, r := range o.results(InLab, nil, []error{errors.New("broken")}, "", 0) {
			got = append(got, r.SizeClass)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", traffic, got)
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
