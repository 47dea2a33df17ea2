package apps

import (
	"errors"
	"slices"
	"testing"
)

func TestSummarise_byHand(t *testing.T) {
	base := []*run{
		{clients: []float64{1, 4}, p99: []float64{10, 20}, retransmits: 7, idle: 50},
		{clients: []float64{2, 3}, p99: []float64{30, 40}, retransmits: 9, idle: 40},
		{idle: 0, failed: errors.New("exit status 7")},
	}
	runs := []*run{
		{clients: []float64{1, 2, 2}, p99: []float64{5, 4}, retransmits: 1, idle: 30},  // by the first of base: 2/4, 5/20
		{clients: []float64{3, 6, 3}, p99: []float64{60, 8}, retransmits: 5, idle: 20}, // 6/3, 60/40
		{clients: []float64{9, 9, 9}, retransmits: 3, idle: 60},                        // nothing to compare with
	}
	var r Result
	r.summarise(runs, base, 10)
	if !slices.Equal(r.All, []float64{2, 6, 9}) || r.Rounds != 3 || r.Seconds != 6 || r.PairSeconds != 3 || r.Retransmits != 3 || r.IdlePercent != 30 || r.Void {
		t.Errorf("%+v", r)
	}
	if r.P99Ms == nil || *r.P99Ms != 32.5 || r.Ratio == nil || *r.Ratio != 1.25 || r.P99Ratio == nil || *r.P99Ratio != 0.875 {
		t.Errorf("p99 %v, ratio %v, of p99 %v", r.P99Ms, r.Ratio, r.P99Ratio)
	}
	var own Result
	own.summarise(base, base, 10)
	if own.Rounds != 2 || own.Failed != 1 || own.Problem != "round 3: exit status 7" || own.IdlePercent != 45 || own.Seconds != 3.5 || *own.Ratio != 1 || *own.P99Ratio != 1 {
		t.Errorf("the baseline: %+v", own)
	}
	var alone Result
	alone.summarise(runs, nil, 10)
	if alone.Seconds != 6 || alone.Ratio != nil || alone.P99Ratio != nil {
		t.Errorf("without a baseline: %+v", alone)
	}
}

func TestSummarise_void(t *testing.T) {
	at := func(idle ...float64) (runs []*run) {
		for _, x := range idle {
			runs = append(runs, &run{clients: []float64{1}, idle: x})
		}
		return runs
	}
	for _, c := range []struct {
		runs, base []*run
		void       bool
	}{
		{at(50, 50, 50), at(50, 50, 50), false},
		{at(50, 0, 50), at(50, 50, 0), false}, // medians
		{at(9, 50, 9), at(50, 50, 50), true},
		{at(50, 50, 50), at(0, 50, 9.9), true}, // the ratio is
		{at(10), nil, false},
		{at(-1), nil, false}, // not known
	} {
		var r Result
		if r.summarise(c.runs, c.base, 10); r.Void != c.void {
			t.Errorf("%+v: void %v", r, r.Void)
		}
	}
}

// Failed rounds have no figures. They are counted, and the first ones told, with what the machine
// was like.
func TestSummarise_failedRounds(t *testing.T) {
	fail := func(idle float64) *run { return &run{idle: idle, failed: errors.New("killed")} }
	var r Result
	r.summarise([]*run{fail(-1), fail(4), fail(-1), fail(6), fail(-1)}, []*run{fail(50)}, 10)
	if r.Rounds != 0 || r.Failed != 5 || r.IdlePercent != 5 || !r.Void || r.All == nil || r.Seconds != 0 || r.Ratio != nil ||
		r.Problem != "round 1: killed; round 2: killed; round 3: killed; and 2 rounds more" {
		t.Errorf("%+v", r)
	}
	// Rounds that have failed say nothing about the figures of the others.
	measured := func(idle float64) *run { return &run{clients: []float64{1}, idle: idle} }
	for _, c := range []struct {
		runs []*run
		idle float64
		void bool
	}{
		{[]*run{fail(95), measured(4), fail(95)}, 4, true},
		{[]*run{fail(1), measured(60), fail(2)}, 60, false},
		{[]*run{fail(95), measured(-1)}, -1, false}, // not known
	} {
		var r Result
		if r.summarise(c.runs, nil, 10); r.IdlePercent != c.idle || r.Void != c.void || r.Rounds != 1 {
			t.Errorf("%+v, want idle %g", r, c.idle)
		}
	}
	r = Result{Problem: "wrk missing", Missing: true}
	if r.summarise(nil, nil, 10); r.Void || r.Rounds != 0 || r.IdlePercent != -1 || r.Problem != "wrk missing" {
		t.Errorf("of nothing: %+v", r)
	}
}

func TestMissing_namesPackages(t *testing.T) {
	there := func(files ...string) func(string) (string, error) {
		return func(file string) (string, error) {
			if slices.Contains(files, file) {
				return "/bin/" + file, nil
			}
			return "", errors.New("not there")
		}
	}
	app := func(name string) App { return Apps[slices.Index(AppNames(), name)] }
	for _, c := range []struct {
		app, want string
		there     []string
	}{
		{"redis", "", []string{"redis-server", "redis-benchmark"}},
		{"redis", "redis-benchmark missing: apt install redis-tools", []string{"redis-server"}},
		{"pgbench", "initdb, postgres, pgbench missing: apt install postgresql postgresql-contrib", nil},
		{"nginx", "nginx missing: apt install nginx-light", []string{"wrk"}},
		{"mpi-shift", "mpicc, gcc missing: apt install libopenmpi-dev gcc", []string{"mpirun", "nsenter"}},
	} {
		if got := app(c.app).missing(there(c.there...)); got != c.want {
			t.Errorf("%s: %q, want %q", c.app, got, c.want)
		}
	}
	for _, a := range Apps {
		if len(a.needs) == 0 || a.missing(there()) == "" {
			t.Errorf("%s needs nothing", a.Name)
		}
	}
}
