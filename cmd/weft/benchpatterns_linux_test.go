package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/bench/papers/thesis"
	"weft/bench/schedulerlab"
	"weft/bench/testbed"
	"weft/internal/slowtest"
)

func TestBenchPatterns_bad(t *testing.T) {
	const bench = "bench patterns "
	wantError(t, bench+"--rows best", "--rows", `"best"`, "two-level")
	wantError(t, bench+"--patterns stride(3)", "--patterns", "stride(3)")
	wantError(t, bench+"--rate -1", "--rate=-1")
	wantError(t, bench+"--mappings 0", "--mappings=0")
	wantError(t, bench+"--duration 1ms", "--duration=1ms")
	wantError(t, bench+"--warmup -1s", "--warmup=-1s")
	wantError(t, bench+"--probes 0", "--probes=0")
	wantError(t, bench+"--period 1ms", "--period=1ms")
	wantError(t, bench+"--period 13s", "--period=13s", "12s")
	wantError(t, bench+"--rows first-fit,hedera", "--rows", `"hedera"`, "annealing")
	wantError(t, bench+"--rows ecmp,ecmp", "--rows", "twice")
}

// A quick run yields to flags, and follows the advice that --period gives, unless the flags do not.
func TestBenchPatterns_quickYieldsToFlags(t *testing.T) {
	flags := []string{"mappings", "duration", "warmup", "period"}
	for set := range 1 << len(flags) {
		changed := func(flag string) bool { return set>>slices.Index(flags, flag)&1 > 0 }
		given := benchPatternsOptions{mappings: 7, duration: time.Minute, warmup: 9 * time.Second, period: 3 * time.Second}
		o := given
		o.shorten(changed)
		for flag, is := range map[string][2]time.Duration{
			"mappings": {time.Duration(o.mappings), time.Duration(given.mappings)}, "duration": {o.duration, given.duration},
			"warmup": {o.warmup, given.warmup}, "period": {o.period, given.period},
		} {
			if changed(flag) != (is[0] == is[1]) {
				t.Errorf("flags %04b: %s is %v", set, flag, is[0])
			}
		}
		if o.warmup < patternsWarmup*o.period && !changed("warmup") {
			t.Errorf("flags %04b: a warmup of %v with a period of %v", set, o.warmup, o.period)
		}
	}
}

// What is least idle is so of all runs of all rows. What is not known is not it.
func TestBenchPatterns_leastIdle(t *testing.T) {
	for _, c := range []struct {
		idle []float64
		want float64
		void bool
	}{{nil, -1, false}, {[]float64{-1, -1}, -1, false}, {[]float64{50, testbed.CPUBound - 1, 45}, testbed.CPUBound - 1, true}, {[]float64{60, -1, testbed.CPUBound}, testbed.CPUBound, false}, {[]float64{-1, 0}, 0, true}} {
		if got, void := leastIdle(c.idle), patternsVoid(c.idle); got != c.want || void != c.void {
			t.Errorf("%v: %g, void %t; want %g, %t", c.idle, got, void, c.want, c.void)
		}
	}
	o := benchPatternsOptions{chosen: thesis.Patterns()[:2]}
	rows := patternsRows[:3]
	idle := [][]float64{{40, -1, 30}, {-1, -1, -1}}
	var results []patternsResult
	for i, p := range o.chosen {
		for k, r := range rows {
			results = append(results, patternsResult{Row: r.name, Pattern: p.Name, IdlePercent: idle[i][k]})
		}
	}
	table := o.table(rows, results)
	for i, want := range []string{"least idle %", "30", "-"} {
		if got := table[i][len(table[i])-1]; got != want {
			t.Errorf("row %d ends with %q, want %q", i, got, want)
		}
	}
}

// Every kind of row moves bytes, and what it found is printed, written and kept. An ordinary run
// leaves those rows out that differ from another one in the rule of the scheduler or in the tables
// of the switches alone: those have tests of their own (internal/schedulerd, hedera, lab). Plain
// ECMP is the senders' part of each row. What runs beside each other here, schedulerlab's
// and testbed's tests and TestScheduler_placesAtHosts have with the race detector.
func TestBenchPatterns_measures(t *testing.T) {
	slowtest.Unraced(t)
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if err := schedulerlab.Check(); err != nil {
		t.Skip(err)
	}
	self := program(t)
	dir := t.TempDir()
	section := filepath.Join(dir, "results.md")
	if err := os.WriteFile(section, []byte("# Results\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := benchPatternsOptions{rate: 4, probes: 125, seed: 3, name: "tpatt", resultOutput: resultOutput{json: true}, patterns: []string{"same-ID outgoing"},
		report: filepath.Join(dir, "report.html"), append: section, self: self.Args[:1], env: self.Env}
	o.shorten(func(string) bool { return false })
	if !slowtest.Long() {
		o.rows = []string{"classifier", "annealing", "host-annealing", "weft-drb", "non-blocking"}
	}
	rows := slices.DeleteFunc(slices.Clone(patternsRows), func(r patternsRow) bool { return o.rows != nil && !slices.Contains(o.rows, r.name) })
	var out, notes bytes.Buffer
	if err := o.run(t.Context(), &out, &notes); err != nil {
		t.Fatal(err)
	}
	var results []patternsResult
	if err := json.Unmarshal(out.Bytes(), &results); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if len(results) != len(rows) || len(rows) == 0 {
		t.Fatalf("%d results: %+v", len(results), results)
	}
	for i, r := range results { // how much arrives is the machine's, too
		t.Logf("%+v", r)
		if row := rows[i]; (r.Loop != nil) != (row.rule != "") || row.rule != "" && (r.Loop == nil || r.Loop.Loops == 0 || r.Loop.LoopMS <= 0 || r.Loop.Chosen != 16 || r.Loop.Whole > r.Loop.Pinned) {
			t.Errorf("the control loop of %s: %+v", row.name, r.Loop)
		}
		if r.Row != rows[i].name || r.Pattern != "same-ID outgoing" || r.PercentOfIdeal <= 0 || len(r.Runs) != 1 {
			t.Errorf("%+v", r)
		}
	}
	if !strings.Contains(notes.String(), "flows got a port") {
		t.Errorf("no word of the classifiers in %q", &notes)
	}
	for _, file := range []string{section, o.report} {
		if b, err := os.ReadFile(file); err != nil || !bytes.Contains(b, []byte("same-ID outgoing")) {
			t.Errorf("%s: %v, without the pattern:\n%s", file, err, b)
		}
	}
}
