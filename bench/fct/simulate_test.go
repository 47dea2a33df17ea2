package fct

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

func simOptions(t *testing.T, rows ...string) Options {
	t.Helper()
	chosen, err := Select(rows)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Topology: parse(t, "leaf-spine:leaves=2,spines=2,hosts=2"), RateMbit: 10, Rows: chosen, Workload: "websearch_dctcp", Scale: 0.02, Traffic: "random",
		Loads: []float64{0.3}, Seed: 1, Seeds: 2, Duration: time.Second, Drain: 20 * time.Second,
		Policy: policy.Options{FlowcellBytes: 4096, LinkRateBits: 10e6}, Resequencer: resequencer.Config{MinHold: 5 * time.Millisecond, Hold: 20 * time.Millisecond}}
}

func newSimulator(t *testing.T, o *Options) *simulator {
	t.Helper()
	rated, err := withRates(o.Topology, o.RateMbit)
	if err != nil {
		t.Fatal(err)
	}
	return &simulator{Options: o, real: rated, known: rated, whole: rated, idle: Idle{Delay: 30 * time.Microsecond}}
}

// A flow that is alone takes what ideal says, in a rack and between racks, with every model.
func TestSimulate_ideal(t *testing.T) {
	o := simOptions(t, "kernel-ecmp", "switch-drill", "drb")
	s := newSimulator(t, &o)
	for _, row := range o.Rows {
		m, err := modelOf(row)
		if err != nil {
			t.Fatal(err)
		}
		for _, dst := range []topology.NodeID{1, 3} {
			for _, bytes := range []int64{1, 1000, int64(m.mss), int64(m.mss) + 1, 5 * int64(m.mss), 9000} {
				r, err := s.play(plan{flows: []workload.Flow{{Dst: dst, Bytes: bytes}}}, row, m, 1)
				if err != nil {
					t.Fatal(err)
				}
				got := r.samples[0]
				want := s.ideal(m, 0, dst, bytes)
				if !got.finished || math.Abs(float64(got.took-want)) > float64(200*time.Microsecond) {
					t.Errorf("%s, %d bytes to %d: %+v, want %v", row.Name, bytes, dst, got, want)
				}
			}
		}
	}
}

// All rows divide by one base, whatever their own packets are like: the simulator's for the kernel's
// TCP, or a lab's that was measured.
func TestSimulate_oneBase(t *testing.T) {
	o := simOptions(t, "kernel-ecmp", "drb", "switch-drill")
	s := newSimulator(t, &o)
	p, err := s.plan(0.3, 1)
	if err != nil {
		t.Fatal(err)
	}
	measured := newAlone("the lab's", 10, []point{{1, time.Millisecond}, {1000, 2 * time.Millisecond}}, map[int]time.Duration{2: time.Millisecond / 2})
	for _, idle := range []Idle{{Delay: time.Microsecond}, {Delay: time.Microsecond, lab: measured}} {
		s.idle = idle
		var first []time.Duration
		for _, row := range o.Rows {
			m, err := modelOf(row)
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.play(p, row, m, 1)
			if err != nil {
				t.Fatal(err)
			}
			var ideals []time.Duration
			for i, x := range r.samples {
				ideals = append(ideals, x.ideal)
				if idle.lab != nil && x.ideal != measured.took(p.flows[i].Bytes, linksBetween(s.whole, p.flows[i].Src, p.flows[i].Dst), 10) {
					t.Fatalf("%s: %d bytes divide by %v", row.Name, x.bytes, x.ideal)
				}
			}
			if first == nil {
				first = ideals
			}
			if !slices.Equal(first, ideals) {
				t.Errorf("%s divides by other times than %s", row.Name, o.Rows[0].Name)
			}
		}
	}
	o.Rows = o.Rows[:1]
	results, err := Simulate(t.Context(), o, Idle{lab: measured})
	if err != nil || results[0].SlowdownBase != "the lab's" || results[0].BaseByteMs != 1 {
		t.Errorf("%+v, %v", results, err)
	}
}

// The flows of a job begin when those before have ended, and a job's time is theirs.
func TestSimulate_flowsFollow(t *testing.T) {
	o := simOptions(t, "kernel-ecmp")
	s := newSimulator(t, &o)
	m, _ := modelOf(o.Rows[0])
	r, err := s.play(plan{jobs: 1, after: []int{-1, 0, 1}, flows: []workload.Flow{
		{Start: time.Millisecond, Dst: 2, Bytes: 5000}, {Start: time.Millisecond, Dst: 3, Bytes: 3000}, {Start: time.Millisecond, Dst: 1, Bytes: 100}}}, o.Rows[0], m, 1)
	if err != nil {
		t.Fatal(err)
	}
	sum := time.Duration(0)
	for _, f := range r.samples {
		sum += f.took
	}
	// What a flow's answer takes, and what the last acknowledgement takes, overlap.
	if j := r.jobs[0]; !j.finished || j.took > sum+5*time.Millisecond || j.took < sum-5*time.Millisecond || j.bytes != 8100 {
		t.Errorf("a job of %+v takes %+v", r.samples, j)
	}
	o.Duration, o.Drain = 2*time.Millisecond, 3*time.Millisecond
	if r, err = s.play(plan{after: []int{-1, 0}, flows: []workload.Flow{{Dst: 2, Bytes: 1 << 20}, {Dst: 3, Bytes: 1}}}, o.Rows[0], m, 1); err != nil {
		t.Fatal(err)
	}
	if a, z := r.samples[0], r.samples[1]; a.finished || !a.begun || a.took != 5*time.Millisecond || z.begun || z.finished {
		t.Errorf("%+v", r.samples)
	}
}

// Every row has a model or a reason, all rows play the same flows, and a run is repeatable.
func TestSimulate_allRows(t *testing.T) {
	var names []string
	for _, r := range Rows() {
		names = append(names, r.Name)
	}
	o := simOptions(t, names...)
	var notes []string
	o.Note = func(s string) { notes = append(notes, s) }
	results, err := Simulate(t.Context(), o, Idle{Delay: DefaultDelay})
	if err != nil {
		t.Fatal(err)
	}
	policies := make(map[string]bool)
	for _, r := range results {
		policies[r.Policy] = true
		if r.Measured != InSimulator || r.IdlePercent != -1 || r.Void || r.SlowdownBase != simBase || r.BaseByteMs != results[0].BaseByteMs {
			t.Errorf("%+v", r)
		}
		if r.SizeClass == "all" && (r.Flows != results[0].Flows || r.Flows < 20 || r.Unfinished != 0 || r.SlowdownP50 < 0.99) {
			t.Errorf("%+v", r)
		}
	}
	if len(policies)+len(notes) != len(names) || !policies["kernel-ecmp"] || !policies["switch-drill"] || !policies["host-auto"] || !policies["kernel-dctcp"] {
		t.Errorf("simulated: %v; %q", policies, notes)
	}
	if !slices.ContainsFunc(notes, func(s string) bool { return strings.Contains(s, "kernel-mptcp is not simulated") }) {
		t.Errorf("%q", notes)
	}
	again, err := Simulate(t.Context(), o, Idle{Delay: DefaultDelay})
	if err != nil {
		t.Fatal(err)
	}
	for i := range again {
		again[i].runs, results[i].runs = nil, nil
	}
	if !reflect.DeepEqual(again, results) {
		t.Error("a second run differs")
	}
}

// A link that is slow or down makes flows of the kernel's ECMP slower in the mean, and hosts that
// do not use the dead link see no loss.
func TestSimulate_failures(t *testing.T) {
	mean := func(failure string) float64 {
		o := simOptions(t, "kernel-ecmp")
		o.Failure, o.Loads, o.Seeds = failure, []float64{0.6}, 5
		results, err := Simulate(t.Context(), o, Idle{Delay: DefaultDelay})
		if err != nil {
			t.Fatal(err)
		}
		if r := results[0]; r.Unfinished > 0 || r.Flows == 0 {
			t.Errorf("%+v", r)
		}
		return results[0].MeanMs
	}
	// Slowdowns divide by what a flow takes without the failure.
	var bases []float64
	for _, failure := range []string{"symmetric", "slow-link(h0.0.2-e0.0,0.1)"} {
		o := simOptions(t, "kernel-ecmp")
		o.Failure, o.Seeds = failure, 1
		results, err := Simulate(t.Context(), o, Idle{Delay: DefaultDelay})
		if err != nil {
			t.Fatal(err)
		}
		bases = append(bases, results[0].BaseByteMs)
	}
	if bases[0] != bases[1] {
		t.Errorf("a byte takes %g ms", bases)
	}
	whole, down, slow := mean("symmetric"), mean("link-down"), mean("slow-link(e0.0-a0.0,0.1)")
	if down <= whole || slow <= whole {
		t.Errorf("mean of %.1f ms, with a link down %.1f, slow %.1f", whole, down, slow)
	}
}

func TestCanSimulate_oneRowIsEnough(t *testing.T) {
	for _, c := range []struct {
		rows []string
		want string // of the error; "": none
	}{{[]string{"kernel-mptcp", "kernel-bbr"}, "kernel-mptcp: the simulator has no MPTCP"}, {[]string{"kernel-bbr", "drb"}, ""}} {
		rows, err := Select(c.rows)
		if err != nil {
			t.Fatal(err)
		}
		if err := CanSimulate(rows); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.rows, err)
		}
	}
}

func TestCharts_aLineForEachRow(t *testing.T) {
	o := simOptions(t, "kernel-ecmp", "drb")
	o.Loads = []float64{0.2, 0.5}
	results, err := Simulate(t.Context(), o, Idle{Delay: DefaultDelay})
	if err != nil {
		t.Fatal(err)
	}
	charts := Charts(results)
	if len(charts) != 2 {
		t.Fatalf("%d charts", len(charts))
	}
	for _, c := range charts {
		if len(c.Lines) != 2 || c.Lines[0].Name != "kernel-ecmp, simulator" {
			t.Errorf("%+v", c.Lines)
		}
		for _, l := range c.Lines {
			if len(l.X) < 5 || len(l.X) != len(l.Y) || !slices.IsSorted(l.X) || !slices.IsSorted(l.Y) || l.Y[len(l.Y)-1] < 0.9 {
				t.Errorf("%+v", l)
			}
		}
	}
}
