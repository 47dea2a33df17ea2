package fct

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/bench/testbed"
)

// A row whose fabric cannot be built, one that cannot run and one that fails in all rounds have
// results that say so, and no figures. The others have theirs. A fabric is tried once.
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
	if strings.Count(notes, "has no figures") != 4 || !strings.Contains(notes, "presto, round 1: presto starts no more\n") {
		t.Errorf("%q", notes)
	}
	for i, r := range results {
		row := rows[i/len(sizeClasses)].Name
		want := map[string]string{"switch-drill": "no drill here", "switch-rb": "no rb here", "kernel-ecmp": "in network namespaces only", "presto": "starts no more"}[row]
		switch {
		case r.Policy != row || !strings.Contains(r.Error, want) || (r.Error == "") != (want == ""):
			t.Errorf("%s: %+v", row, r)
		case want != "" && (r.Flows != 0 || r.P99Ms != nil || r.MeanMs != 0 || r.Rounds != 0 || (r.Failed == o.Seeds) != (row == "presto")):
			t.Errorf("%s has figures: %+v", row, r)
		case want == "" && r.SizeClass == "all" && (r.Flows == 0 || r.MeanMs == 0 || r.SlowdownBase != rows[0].Hosts.Label+", alone in the idle lab" || r.BaseByteMs <= 0 || r.Rounds != o.Seeds || r.Failed != 0):
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

// Of a row that fails in a round what it has measured in others stays, and it runs again.
func TestFail_keepsWholeRounds(t *testing.T) {
	b := &bench{Options: &Options{Rows: make([]Row, 2), Loads: []float64{0.1, 0.2}}, errs: make([]error, 2), runs: map[cell][]run{
		{0, 0}: {{}}, {0, 1}: {{}}, {1, 0}: {{}, {}}, {1, 1}: {{}}}}
	broken := errors.New("broken")
	b.fail(1, 1, broken)
	for c, want := range map[cell][]error{{0, 0}: {nil}, {0, 1}: {nil}, {1, 0}: {nil, nil}, {1, 1}: {nil, broken}} {
		var got []error
		for _, r := range b.runs[c] {
			got = append(got, r.failed)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
	if !slices.Equal(b.order(0), []int{0, 1}) || b.done != 1 {
		t.Errorf("%v, %d done", b.order(0), b.done)
	}
}

func TestOrder_alternates(t *testing.T) {
	b := &bench{Options: &Options{Rows: make([]Row, 3)}, errs: make([]error, 3)}
	if a, z := b.order(0), b.order(1); !slices.Equal(a, []int{0, 1, 2}) || !slices.Equal(z, []int{2, 1, 0}) {
		t.Errorf("%v, %v", a, z)
	}
}

// begun is a start of hosts on a fabric.
type begun struct {
	on    Fabric
	hosts string
}

// pretending is a bed in memory that says it runs all hosts, and starts those that spray by drb.
type pretending struct {
	testbed.Testbed
	on     Fabric
	starts *[]begun
	closed *[]Fabric
	fails  *int // so many starts fail first
}

func (p pretending) Supports(testbed.Row) error { return nil }

func (p pretending) Start(ctx context.Context, r testbed.Row) (*testbed.Session, error) {
	*p.starts = append(*p.starts, begun{p.on, r.Name})
	if *p.fails--; *p.fails >= 0 {
		return nil, errors.New("starts later")
	}
	rows, err := testbed.Select([]string{"drb"})
	if err != nil {
		return nil, err
	}
	return p.Testbed.Start(ctx, rows[0])
}

func (p pretending) Close() error {
	*p.closed = append(*p.closed, p.on)
	return p.Testbed.Close()
}

// pretend are options whose fabrics are pretending.
func pretend(t *testing.T, fails int, rows ...string) (o Options, starts *[]begun, closed *[]Fabric) {
	chosen, err := Select(rows)
	if err != nil {
		t.Fatal(err)
	}
	starts, closed = new([]begun), new([]Fabric)
	top := parse(t, "leaf-spine:leaves=2,spines=2,hosts=2")
	return Options{Topology: top, RateMbit: 10, Rows: chosen, Workload: "websearch_dctcp", Scale: 0.002, Traffic: "random",
		Loads: []float64{0.3}, Seed: 1, Seeds: 2, Duration: 100 * time.Millisecond, Drain: time.Minute,
		Open: func(_ context.Context, f Fabric) (testbed.Testbed, error) {
			return pretending{testbed.InMemory(testbed.Config{Topology: top, RateMbit: 10, Seed: 1}), f, starts, closed, &fails}, nil
		}}, starts, closed
}

// The base is measured with the kernel's TCP on the fabric without failure and rule, whatever the
// rows are. It is tried twice, and its fabric is closed before rows run. At an interrupt no further row
// starts, and none is said to have failed.
func TestRun_baseIsThePlainFabrics(t *testing.T) {
	o, starts, closed := pretend(t, 1, "switch-drb", "switch-rb")
	o.Failure = "slow-link"
	notes := ""
	o.Note = func(s string) { notes += s + "\n" }
	var idle Idle
	o.OnIdle = func(i Idle) { idle = i }
	ctx, cancel := context.WithCancel(t.Context())
	o.Progress = func(string, int, int) {
		if !slices.Equal(*closed, []Fabric{{Whole: true}}) {
			t.Errorf("when rows run, closed are %+v", *closed)
		}
		cancel()
	}
	results, err := Run(ctx, o)
	base := begun{Fabric{Whole: true}, "kernel-ecmp"}
	if want := []begun{base, base, {Fabric{Balance: "drb"}, "kernel-ecmp"}}; !errors.Is(err, context.Canceled) || results != nil || !slices.Equal(*starts, want) {
		t.Errorf("%v, %d results, started %+v", err, len(results), *starts)
	}
	if strings.Contains(notes, "no figures") || strings.Contains(notes, "round") || !strings.Contains(notes, "in the idle fabric: ") || !strings.Contains(notes, "starts later") {
		t.Errorf("%q", notes)
	}
	if idle.lab == nil || idle.lab.base != labBase || idle.lab.near[2] <= 0 || idle.lab.near[2] > idle.lab.farByte() {
		t.Errorf("%+v", idle.lab)
	}
	if len(*closed) != 3 {
		t.Errorf("closed are %+v", *closed)
	}
}

// Without a base no row runs, and all say why.
func TestRun_withoutABase(t *testing.T) {
	o, starts, _ := pretend(t, baseTries, "switch-drb", "kernel-ecmp")
	results, err := Run(t.Context(), o)
	if err != nil || len(*starts) != baseTries || len(results) != 2*len(sizeClasses) {
		t.Fatalf("%v, %+v, %d results", err, *starts, len(results))
	}
	for _, r := range results {
		if !strings.Contains(r.Error, "starts later") || r.Rounds != 0 || r.SlowdownBase != "" || r.BaseByteMs != 0 {
			t.Errorf("%+v", r)
		}
	}
}

// An interrupt while the base is measured is no error of rows.
func TestRun_interruptedBase(t *testing.T) {
	o, _, _ := pretend(t, 0, "kernel-ecmp")
	ctx, cancel := context.WithCancel(t.Context())
	open := o.Open
	o.Open = func(c context.Context, f Fabric) (testbed.Testbed, error) {
		time.AfterFunc(50*time.Millisecond, cancel)
		return open(c, f)
	}
	o.Note = func(s string) {
		if strings.Contains(s, "figures") || strings.Contains(s, "fabric") {
			t.Errorf("note: %s", s)
		}
	}
	if results, err := Run(ctx, o); !errors.Is(err, context.Canceled) || results != nil {
		t.Errorf("%v, %+v", err, results)
	}
}

// A fabric that cannot be taken down is an error beside all results.
func TestRun_resultsBesideAnError(t *testing.T) {
	o, _, _ := pretend(t, baseTries, "kernel-ecmp")
	open := o.Open
	o.Open = func(c context.Context, f Fabric) (testbed.Testbed, error) {
		bed, err := open(c, f)
		return staying{bed}, err
	}
	if results, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "stays up") || len(results) != len(sizeClasses) {
		t.Errorf("%v, %+v", err, results)
	}
}

type staying struct{ testbed.Testbed }

func (staying) Close() error { return errors.New("stays up") }
