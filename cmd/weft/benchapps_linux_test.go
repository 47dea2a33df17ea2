package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/bench/apps"
	"weft/internal/exitcode"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
)

func TestBenchApps_quickYieldsToFlags(t *testing.T) {
	o := benchAppsOptions{}
	o.Bytes, o.Rounds = 5<<20, 7
	o.shorten(func(flag string) bool { return flag == "bytes" })
	if o.Bytes != 5<<20 || o.Rounds != 1 {
		t.Errorf("%+v", o)
	}
}

// A row without figures says why: what is missing once for each app, what failed for each row.
func TestBenchApps_problems(t *testing.T) {
	ratio := 0.5
	good := apps.Result{App: "redis", Row: "host-auto", Rounds: 1, All: []float64{2}, Seconds: 2, Ratio: &ratio, Void: true}
	failed := apps.Result{App: "redis", Row: "kernel-ecmp", Problem: "round 1: no answer"}
	missing := []apps.Result{{App: "nginx", Row: "kernel-ecmp", Missing: true, Problem: "wrk missing: apt install wrk"},
		{App: "nginx", Row: "host-auto", Missing: true, Problem: "wrk missing: apt install wrk"}}
	all := append([]apps.Result{failed, good}, missing...)
	table := appsTable(all)
	if got := strings.Join(table[2], "|"); len(table) != 5 || got != "redis|host-auto|2.00|2.00|2.00|0.50|0.00|-|-|0|0|void: busy machine" {
		t.Errorf("%q", got)
	}
	for _, line := range []int{1, 3, 4} {
		if got := strings.Join(table[line][2:], ""); got != "---------see below" {
			t.Errorf("%q", table[line])
		}
	}
	if got, want := appsProblems(all), "\nredis, kernel-ecmp: round 1: no answer\nnginx: wrk missing: apt install wrk\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := appsFailed(all); err == nil || !strings.Contains(err.Error(), "1 of 4 results") {
		t.Errorf("%v", err)
	}
	if err := appsFailed(append(missing, good)); err != nil {
		t.Errorf("what is missing is no failure: %v", err)
	}
	if err := appsFailed(missing); exitcode.Of(err) != exitcode.Absent || !strings.Contains(err.Error(), "apt install wrk") {
		t.Errorf("all is missing: %v", err)
	}
}

// Programs of all kinds do their work over plain switches and over hosts that spray, and nothing
// of them is left. A program that is not there is a row.
func TestBenchApps_measures(t *testing.T) {
	slowtest.Unraced(t)
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	self := program(t)
	var o benchAppsOptions
	o.topology, o.rows, o.json = "leaf-spine:leaves=2,spines=2,hosts=2", []string{"kernel-ecmp", "host-auto"}, true
	o.RateMbit, o.Seed, o.Lab, o.Weft, o.Env = 20, 3, kerneltest.LabName("z"), self.Args[:1], self.Env
	o.shorten(func(string) bool { return false })
	o.Bytes = minAppBytes
	t.Setenv("TMPDIR", "/tmp") // where a system user may go
	before, _ := filepath.Glob("/tmp/weft-apps-*")
	var out, notes bytes.Buffer
	if err := o.run(t.Context(), &out, &notes); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	var results []apps.Result
	if err := json.Unmarshal(out.Bytes(), &results); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if len(results) != 2*len(apps.Apps) {
		t.Fatalf("%d results: %s", len(results), &out)
	}
	var missing []string
	for i, r := range results {
		if a := apps.Apps[i/2]; r.App != a.Name || r.Row != o.rows[i%2] || r.Clients != 4 {
			t.Errorf("%+v", r)
		}
		if r.Missing {
			missing = append(missing, r.Problem)
			continue
		}
		if r.Problem != "" || r.Rounds != 1 || r.Seconds <= 0 || r.PairSeconds > r.Seconds || r.Ratio == nil {
			t.Errorf("%+v", r)
		}
		if timed := r.App != "iperf3" && r.App != "rsync"; (r.P99Ms != nil) != timed || timed && *r.P99Ms <= 0 {
			t.Errorf("%s: p99 %v", r.App, r.P99Ms)
		}
	}
	if after, _ := filepath.Glob("/tmp/weft-apps-*"); len(after) > len(before) {
		t.Errorf("directories are left: %v, before %v", after, before)
	}
	if missing != nil {
		t.Skipf("not all apps ran: %q", missing)
	}
}
