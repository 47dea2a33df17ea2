package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/bench/papers"
	"weft/internal/slowtest"
)

// wanted are the papers' headline results.
var wanted = strings.Fields(`
	drb-appendix-b drb-f6-fattree drb-f6-vl2 drb-f7 drb-f8 drb-f9 drb-5.5 drb-f10 drb-f11 drb-f12
	luopan-f2 luopan-f9 luopan-f10 luopan-f11 luopan-f12 luopan-f13 luopan-f14 luopan-f15 luopan-f16 luopan-f17 luopan-f18 luopan-f19 luopan-t1
	drill-f2 drill-f3 drill-f6 drill-f7 drill-f9 drill-f10 drill-f11a drill-f11 drill-f12 drill-f13 drill-f14 drill-t1
	conga-f9 conga-f10 conga-f11 conga-f12 conga-f13 conga-f14 conga-f15 conga-f16
	thesis-t2.1 thesis-t2.2 thesis-t3.1 thesis-t3.2 hedera-t4.2 hedera-t4.3 hedera-t4.4 hedera-t4.5 hedera-t4.6 hedera-t4.7
	thesis-f5.10 thesis-f5.11 thesis-f5.12 thesis-f5.14 thesis-f5.15 thesis-f5.16 thesis-f5.17`)

// notReproduced are those of them that are not experiments, and why.
var notReproduced = map[string]string{}

func TestExperiments_areAllOrSayWhyNot(t *testing.T) {
	var names []string
	for _, e := range experiments() {
		if slices.Contains(names, e.Name) {
			t.Errorf("%s occurs twice", e.Name)
		}
		names = append(names, e.Name)
		if e.Source == "" || e.Title == "" || len(e.Setting) == 0 || e.Run == nil {
			t.Errorf("%s lacks a source, a title, a setting or what it runs", e.Name)
		}
		for _, p := range e.Setting {
			if p.Name == "" || p.Value == "" || p.Chosen && p.Why == "" {
				t.Errorf("%s: parameter %+v: what was chosen has a reason", e.Name, p)
			}
		}
	}
	if _, err := papers.WithDecisions(experiments()); err != nil && !errors.Is(err, papers.ErrNoDecision) {
		t.Error(err)
	}
	for _, name := range wanted {
		switch there := slices.Contains(names, name); {
		case !there && notReproduced[name] == "":
			t.Errorf("%s is neither an experiment nor said not to be one", name)
		case there && notReproduced[name] != "":
			t.Errorf("%s is an experiment, and said not to be one", name)
		}
	}
}

// Every experiment runs in a small form, says the same again, and says something, of
// which another seed changes nothing but figures.
func TestExperiments_runQuickly(t *testing.T) {
	if testing.Short() {
		t.Skip("simulations are left out with -short")
	}
	for i, e := range experiments() {
		t.Run(e.Name, func(t *testing.T) {
			if slowtest.Small() && i%6 != 0 {
				t.Skip("one of six runs, all with WEFT_TESTS=all")
			}
			t.Parallel()
			start := time.Now()
			one, err := papers.Run(t.Context(), e, papers.Options{Quick: true, Seed: 1, Jobs: 1})
			if err != nil {
				t.Fatal(err)
			}
			cache, err := newPartCache(t.TempDir(), true)
			if err != nil {
				t.Fatal(err)
			}
			var two, kept *papers.Report // -j 2, and what was kept of it
			b := papers.Batch{Subjects: papers.Subjects([]papers.Experiment{e}), Options: papers.Options{Quick: true, Seed: 1, Jobs: 2}, Keep: cache}
			for _, r := range []**papers.Report{&two, &kept} {
				err := b.Run(t.Context(), func(_ int, report *papers.Report, err error) {
					if *r = report; err != nil {
						t.Fatal(err)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			other, err := papers.Run(t.Context(), e, papers.Options{Quick: true, Seed: 2, Jobs: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v, %s: %s", time.Since(start).Round(time.Millisecond), one.Verdict, one.Took())
			want := wholeReport(t, one)
			if got := wholeReport(t, two); got != want {
				t.Errorf("-j 1:\n%s\n-j 2:\n%s", want, got)
			}
			if got := wholeReport(t, kept); got != want {
				t.Errorf("-j 1:\n%s\nkept:\n%s", want, got)
			}
			seen := make(map[[2]string]bool)
			if len(one.Rows) != len(other.Rows) {
				t.Fatalf("%d rows with one seed, %d with another", len(one.Rows), len(other.Rows))
			}
			for i, r := range one.Rows {
				o := other.Rows[i]
				if r.Label != o.Label || r.Metric != o.Metric || r.Note != o.Note || (r.Paper == nil) != (o.Paper == nil) || r.Paper != nil && *r.Paper != *o.Paper {
					t.Errorf("row %+v is, with another seed, %+v", r, o)
				}
				key := [2]string{r.Label, r.Metric}
				if r.Label == "" || r.Metric == "" || seen[key] {
					t.Errorf("row %q, %q has no name of its own", r.Label, r.Metric)
				}
				seen[key] = true
			}
		})
	}
}

// wholeReport is a report as text, as JSON and on a page, without what the machine took.
func wholeReport(t *testing.T, r *papers.Report) string {
	t.Helper()
	c := *r
	c.WallS, c.CPUS, c.PacketHopsPerCPUS, c.RSSMB = 0, 0, 0, 0
	var b strings.Builder
	if err := errors.Join(c.WriteText(&b), printJSON(&b, &c), papers.Page{Reports: []*papers.Report{&c}}.Write(&b)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
