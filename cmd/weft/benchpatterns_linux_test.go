package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/bench/schedulerlab"
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

func TestBenchPatterns_quickYieldsToFlags(t *testing.T) {
	o := benchPatternsOptions{mappings: 5, duration: time.Minute, warmup: 3 * time.Second}
	o.shorten(func(flag string) bool { return flag == "duration" })
	if o.mappings != 1 || o.duration != time.Minute || o.warmup != time.Second {
		t.Errorf("%+v", o)
	}
}

// Every row moves bytes, and what it found is printed, written and kept.
func TestBenchPatterns_measures(t *testing.T) {
	slowtest.System(t)
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
	o := benchPatternsOptions{rate: 4, probes: 125, period: 200 * time.Millisecond, seed: 3, name: "tpatt", json: true, patterns: []string{"same-ID outgoing"},
		report: filepath.Join(dir, "report.html"), append: section, self: self.Args[:1], env: self.Env}
	o.shorten(func(string) bool { return false })
	var out, notes bytes.Buffer
	if err := o.run(t.Context(), &out, &notes); err != nil {
		t.Fatal(err)
	}
	var results []patternsResult
	if err := json.Unmarshal(out.Bytes(), &results); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if len(results) != len(patternsRows) {
		t.Fatalf("%d results: %+v", len(results), results)
	}
	for i, r := range results { // how much arrives is the machine's, too
		t.Logf("%+v", r)
		if row := patternsRows[i]; (r.Loop != nil) != (row.rule != "") || row.rule != "" && (r.Loop == nil || r.Loop.Loops == 0 || r.Loop.LoopMS <= 0 || r.Loop.Chosen != 16 || r.Loop.Whole > r.Loop.Pinned) {
			t.Errorf("the control loop of %s: %+v", row.name, r.Loop)
		}
		if r.Row != patternsRows[i].name || r.Pattern != "same-ID outgoing" || r.PercentOfIdeal <= 0 || len(r.Runs) != 1 {
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
