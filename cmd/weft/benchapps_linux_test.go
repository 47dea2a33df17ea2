package main

import (
	"bytes"
	"encoding/json"
	"errors"
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

// Results are printed though a lab could not be taken down, which is an error all the same.
func TestBenchApps_resultsBesideAnError(t *testing.T) {
	o := benchAppsOptions{resultOutput: resultOutput{json: true}}
	var out bytes.Buffer
	err := o.finish(&out, []apps.Result{{App: "redis", Row: "kernel-ecmp", Rounds: 1}}, errors.New("lab apps stays"))
	if err == nil || !strings.Contains(err.Error(), "lab apps stays") || !strings.Contains(out.String(), `"kernel-ecmp"`) {
		t.Errorf("%v, %q", err, out.String())
	}
	out.Reset()
	if err := o.finish(&out, nil, errors.New("no lab")); err == nil || out.Len() > 0 {
		t.Errorf("%v, %q", err, out.String())
	}
}

// A row without figures says why: what is missing once for each app, what failed for each row.
func TestBenchApps_problems(t *testing.T) {
	ratio := 0.5
	good := apps.Result{App: "redis", Row: "host-auto", Rounds: 1, Failed: 2, Problem: "round 2: killed", All: []float64{2}, Seconds: 2, Ratio: &ratio, Void: true}
	failed := apps.Result{App: "redis", Row: "kernel-ecmp", Failed: 3, IdlePercent: 7, Problem: "round 1: no answer"}
	missing := []apps.Result{{App: "nginx", Row: "kernel-ecmp", Missing: true, IdlePercent: -1, Problem: "wrk missing: apt install wrk"},
		{App: "nginx", Row: "host-auto", Missing: true, IdlePercent: -1, Problem: "wrk missing: apt install wrk"}}
	all := append([]apps.Result{failed, good}, missing...)
	table := appsTable(all)
	if got := strings.Join(table[2], "|"); len(table) != 5 || got != "redis|host-auto|1 of 3|2.00|2.00|2.00|0.50|0.00|-|-|0|0|void: busy machine, see below" {
		t.Errorf("%q", got)
	}
	for line, want := range map[int]string{1: "0 of 3--------7see below", 3: "0---------see below", 4: "0---------see below"} {
		if got := strings.Join(table[line][2:], ""); got != want {
			t.Errorf("%q", table[line])
		}
	}
	if got, want := appsProblems(all), "\nredis, kernel-ecmp: round 1: no answer\nredis, host-auto: round 2: killed\nnginx: wrk missing: apt install wrk\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := appsFailed(all); exitcode.Of(err) != exitcode.Failed || !strings.Contains(err.Error(), "3 of 4 results") {
		t.Errorf("%v", err)
	}
	if err := appsFailed(append(missing, good)); exitcode.Of(err) != exitcode.Failed {
		t.Errorf("rows without figures are no failure: %v", err)
	}
	if err := appsFailed([]apps.Result{good}); err != nil {
		t.Errorf("a row with a figure is a failure: %v", err)
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
		if r.P99Ms != nil || r.Failed != 0 { // so few bytes are less than 100 requests
			t.Errorf("%s: p99 %v, %d rounds failed", r.App, r.P99Ms, r.Failed)
		}
	}
	if after, _ := filepath.Glob("/tmp/weft-apps-*"); len(after) > len(before) {
		t.Errorf("directories are left: %v, before %v", after, before)
	}
	if missing != nil {
		t.Skipf("not all apps ran: %q", missing)
	}
}
