package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/bench/fct"
	"weft/internal/config"
	"weft/internal/exitcode"
)

func TestBenchFCT_bad(t *testing.T) {
	const bench = "bench fct "
	wantError(t, bench+"--topology ring", "--topology", "ring")
	wantError(t, bench+"--rows best", "--rows", `"best"`, "kernel-ecmp")
	wantError(t, bench+"--rows=", "rows")
	wantError(t, bench+"--rate 0", "--rate=0")
	wantError(t, bench+"--workload mine", `"mine"`, "websearch_dctcp")
	wantError(t, bench+"--traffic all", `"all"`, "random, permutation")
	wantError(t, bench+"--loads 0.5,heavy", "--loads", `"heavy"`)
	wantError(t, bench+"--loads 1.5", "loads", "1.5")
	wantError(t, bench+"--seeds 0", "seeds 0")
	wantError(t, bench+"--scale 0", "scale 0")
	wantError(t, bench+"--duration 0s", "duration")
	wantError(t, bench+"--drain 0s", "drain 0s")
	wantError(t, bench+"--flowcell 1", "--flowcell")
	wantError(t, bench+"--rows drb,drb", "--rows", "twice")
	wantError(t, bench+"--name abcdefghijklm", "--name", "at most 12")
	wantError(t, bench+"--name abcdefghijkl --rows drb,switch-drill", "--name", "abcdefghijkl0", "at most 12")
	wantError(t, bench+"--rows kernel-mptcp,kernel-bbr --sim", "--sim", "none of the rows", "kernel-mptcp: ", "kernel-bbr: ")
	wantError(t, bench+"--rows switch-letflow:gap=0s", "--rows", "switch-letflow:gap=0s", "gap is")
}

func TestBenchFCT_quickYieldsToFlags(t *testing.T) {
	o := benchFCTOptions{loads: []string{"0.8"}}
	o.Seeds, o.Duration = 3, time.Minute
	o.shorten(func(flag string) bool { return flag == "loads" })
	if !slices.Equal(o.loads, []string{"0.8"}) || o.Seeds != 1 || o.Duration != 2*time.Second {
		t.Errorf("%+v", o)
	}
}

// A workload file is written, and simulated without root; what is wrong in it is named.
func TestBenchFCT_workloadFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "flows.json")
	mustWeft(t, "bench", "fct", "--topology", "leaf-spine:leaves=2,spines=2,hosts=2", "--traffic", "incast(2)", "--loads", "0.3", "--duration", "1s", "--scale", "0.002", "--write-workload", file)
	out := mustWeft(t, "sim", "fct", "--workload-file", file, "--rows", "kernel-ecmp,switch-drill", "--seeds", "1")
	for _, word := range []string{"kernel-ecmp", "switch-drill", "jobs", "simulated"} {
		if !strings.Contains(out, word) {
			t.Errorf("no %q in\n%s", word, out)
		}
	}
	var results []fct.Result
	if err := json.Unmarshal([]byte(mustWeft(t, "sim", "fct", "--workload-file", file, "--rows", "drb", "--seeds", "2", "--json", "--failure", "link-down")), &results); err != nil {
		t.Fatal(err)
	}
	if r := results[0]; len(results) != 4 || r.Policy != "drb" || r.Measured != fct.InSimulator || r.Traffic != "incast(2)" || r.Workload != "fixed(10000000)" || r.Failure != "link-down(e0.0-a0.0)" || r.Flows == 0 {
		t.Errorf("%+v", results)
	}
	wantError(t, "bench fct --workload-file "+file+" --rate 5", "--rate", "workload file")
	wantError(t, "bench fct --write-workload "+file, "loads", "3 are given")
	wantError(t, "bench fct --loads 0.5 --write-workload "+dir, "--write-workload", "directory")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), `"bytes":`, `"bytes":-`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "sim fct --workload-file "+file, "flows[0].bytes", "-")
	wantError(t, "bench fct --workload-file "+file, "flows[0].bytes", "-")
	wantError(t, "sim fct --workload-file "+filepath.Join(dir, "none"), "no such file")
}

// A lab's results are printed and written though the simulator, or taking down the lab, fails.
func TestBenchFCT_resultsBesideAnError(t *testing.T) {
	var o benchFCTOptions
	o.sim, o.Seeds = true, 1
	var err error
	if o.Options.Topology, err = config.Topology("fat-tree:k=4"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fct.html")
	file, err := newReportFile("report", path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.discard()
	results := []fct.Result{{Policy: "kernel-ecmp", SizeClass: "all", Measured: fct.InLab, Flows: 3, Begun: 3, Rounds: 1}}
	var out strings.Builder
	err = o.finish(&out, file, results, errors.New("the lab stays"), func() ([]fct.Result, error) { return nil, errors.New("not simulated") })
	if err == nil || !strings.Contains(err.Error(), "the lab stays") || !strings.Contains(err.Error(), "not simulated") {
		t.Errorf("%v", err)
	}
	page, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(page), "kernel-ecmp") || !strings.Contains(out.String(), "kernel-ecmp") || strings.Contains(out.String(), besideAbout) {
		t.Errorf("%v, %q", err, out.String())
	}
	if err := o.finish(&out, file, nil, errors.New("no lab"), nil); err == nil || err.Error() != "no lab" {
		t.Errorf("%v", err)
	}
}

// The base's lab is none of the rows'.
func TestBenchFCT_labNames(t *testing.T) {
	rows, err := fct.Select([]string{"switch-drb", "kernel-ecmp"})
	if err != nil {
		t.Fatal(err)
	}
	o := benchFCTOptions{name: "x"}
	o.Rows = rows
	for want, f := range map[string]fct.Fabric{"x0": rows[0].Fabric, "x1": {}, "xb": {Whole: true}} {
		if got := o.lab(f); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
}

// A row without figures has a line, says why below the table, and makes the exit status 1.
func TestFCTRows_errors(t *testing.T) {
	good := fct.Result{Policy: "a", SizeClass: "all", Load: 0.5, Rounds: 1, Flows: 3, Begun: 3, MeanMs: 30, P95Ms: new(40.), IdlePercent: 50, SlowdownBase: "the base", BaseByteMs: 0.25}
	bad := func(class string, load float64) fct.Result {
		return fct.Result{Policy: "b", Where: fct.Switch, SizeClass: class, Load: load, IdlePercent: -1, Error: "no such switch"}
	}
	results := []fct.Result{good, bad("all", 0.5), bad("mice", 0.5), bad("all", 0.8), bad("mice", 0.8)}
	rows := fctRows(results)
	if len(rows) != 3 || rows[0][9] != "40.0" || rows[0][10] != "-" || rows[0][11] != "-" || rows[0][13] != "-" {
		t.Fatalf("%q", rows)
	}
	for i, load := range []string{"0.5", "0.8"} {
		if got, want := strings.Join(rows[i+1], " "), "b switch "+load+" - - - - - - - - - - - - - ERROR, see below"; got != want || len(rows[i+1]) != len(fctHead) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := fctErrors(results); got != "b has no figures: no such switch\n" {
		t.Errorf("%q", got)
	}
	if err := fctFailed(results); exitcode.Of(err) != exitcode.Failed || !strings.Contains(err.Error(), "rows without figures: 1") {
		t.Errorf("%v", err)
	}
	if err := fctFailed(results[:1]); err != nil {
		t.Error(err)
	}
	if about := slowdownAbout(append([]fct.Result{bad("all", 0.5)}, results...)); !strings.Contains(about, "the base: 0.25 ms") {
		t.Errorf("%q", about)
	}
	if about := slowdownAbout(results[1:]); about != "" {
		t.Errorf("without figures: %q", about)
	}
	// Rounds that failed leave the others' figures.
	good.Failed, good.Error = 2, "round 2: gone"
	some := []fct.Result{good, good}
	if got := fctErrors(some); got != "a, load 0.5: 2 of 3 rounds failed: round 2: gone\n" {
		t.Errorf("%q", got)
	}
	if rows := fctRows(some[:1]); len(rows) != 1 || rows[0][len(fctHead)-1] != "50, see below" || fctFailed(some) != nil {
		t.Errorf("%q", rows)
	}
}

// A row that is void says so, and one without a model has nothing beside it.
func TestBesideRows_byHand(t *testing.T) {
	rows := besideRows([]fct.Result{
		{Policy: "a", SizeClass: "all", Load: 0.5, Flows: 3, MeanMs: 30, P99Ms: new(90.), SYNRetransmits: 7, IdlePercent: 4, Void: true, Measured: fct.InLab},
		{Policy: "b", SizeClass: "all", Load: 0.5, Flows: 3, MeanMs: 30, SYNRetransmits: -1, IdlePercent: 50, Measured: fct.InLab},
		{Policy: "a", SizeClass: "all", Load: 0.5, Flows: 3, MeanMs: 20, P99Ms: new(30.), IdlePercent: -1, Measured: fct.InSimulator},
		{Policy: "a", SizeClass: "mice", Load: 0.5, Measured: fct.InLab},
	})
	if len(rows) != 2 || len(rows[0]) != len(besideHead) || len(rows[1]) != len(besideHead) {
		t.Fatalf("%q", rows)
	}
	if r := rows[0]; r[5] != "1.50" || r[8] != "3.00" || r[11] != "7" || r[12] != "4 VOID" {
		t.Errorf("%q", r)
	}
	if r := rows[1]; r[4] != "none" || r[11] != "" || r[12] != "50" {
		t.Errorf("%q", r)
	}
}
