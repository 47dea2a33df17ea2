package papers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// eachSeed is an experiment whose rows come from the seed.
func eachSeed(rows func(seed uint64) []Row) Experiment {
	return Experiment{Name: "x", Run: func(_ context.Context, o Options) (*Outcome, error) {
		return &Outcome{Rows: rows(o.Seed), PacketHops: o.Seed}, nil
	}}
}

// figures are of a row for seeds 1, 2 and so on.
func figures(row func(ours float64) Row, ours ...float64) Experiment {
	return eachSeed(func(seed uint64) []Row { return []Row{row(ours[seed-1])} })
}

func TestSeeds_median(t *testing.T) {
	within := func(ours float64) Row { return Within("a", "b", 100, ours, 10) }
	holds := func(ours float64) Row { return Claim("a", ours == 1) }
	for _, c := range []struct {
		name            string
		row             func(float64) Row
		of              []float64
		ours, low, high float64
		ok              bool
	}{
		{"odd", within, []float64{300, 100, 105}, 105, 100, 300, true},
		{"even: between the middle two", within, []float64{10, 104, 90, 500}, 97, 10, 500, true},
		{"the median is judged, not most seeds", within, []float64{80, 120}, 100, 80, 120, true},
		{"a median that is not OK though the first is", within, []float64{100, 120, 130}, 120, 100, 130, false},
		{"equal", within, []float64{95, 95, 95}, 95, 95, 95, true},
		{"at most", func(x float64) Row { return AtMost("a", "b", 5, x, 0) }, []float64{9, 1, 4}, 4, 1, 9, true},
		{"at least", func(x float64) Row { return AtLeast("a", "b", 5, x, 0) }, []float64{9, 1, 4}, 4, 1, 9, false},
		{"between", func(x float64) Row { return Between("a", "b", 5, 7, x, 0) }, []float64{9, 1, 6}, 6, 1, 9, true},
		{"a statement with most", holds, []float64{0, 1, 1}, 1, 0, 1, true},
		{"a statement with few", holds, []float64{1, 0, 0}, 0, 0, 1, false},
		{"a statement with half is none", holds, []float64{1, 1, 0, 0}, .5, 0, 1, false},
		{"no claim", func(x float64) Row { return Info("a", "b", x) }, []float64{3, 1}, 2, 1, 3, true},
	} {
		e := figures(c.row, c.of...)
		e.Judge = func([]Row) (Verdict, string) { return Agrees, "" }
		r := run(t, e, Options{Seed: 1, Seeds: len(c.of)})
		got := r.Rows[0]
		if got.Ours != c.ours || *got.Low != c.low || *got.High != c.high || got.OK != c.ok {
			t.Errorf("%s: %v from %v to %v, OK %v; want %v from %v to %v, %v", c.name, got.Ours, *got.Low, *got.High, got.OK, c.ours, c.low, c.high, c.ok)
		}
		if n := len(c.of); r.Seeds != n || r.Seed != 1 || r.PacketHops != uint64(n*(n+1)/2) {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

func TestSeeds_verdictIsOfTheMedians(t *testing.T) {
	// Every seed disagrees, each in another row.
	e := eachSeed(func(seed uint64) (rows []Row) {
		for i := range uint64(EnoughSeeds) {
			ours := 100.0
			if i+1 == seed {
				ours = 200
			}
			rows = append(rows, Within(fmt.Sprint("row ", i), "b", 100, ours, 10))
		}
		return rows
	})
	for seed := range uint64(EnoughSeeds) {
		if r := run(t, e, Options{Seed: seed + 1}); r.Verdict != Disagrees {
			t.Fatalf("seed %d: %s", seed+1, r.Verdict)
		}
	}
	if r := run(t, e, Options{Seed: 1, Seeds: EnoughSeeds}); r.Verdict != Agrees || r.Because != "" {
		t.Errorf("%s, %q", r.Verdict, r.Because)
	}
	// The reason is the first seed's, and said where it is needed.
	inner := e.Run
	e.Run = func(ctx context.Context, o Options) (*Outcome, error) {
		out, err := inner(ctx, o)
		out.Because = fmt.Sprint("seed ", o.Seed)
		return out, err
	}
	if r := run(t, e, Options{Seed: 1, Seeds: EnoughSeeds}); r.Verdict != Agrees || r.Because != "" {
		t.Errorf("with a reason: %s, %q", r.Verdict, r.Because)
	}
	if r := run(t, e, Options{Seed: 1, Seeds: 2}); r.Verdict != Disagrees || r.Because != "seed 1" {
		t.Errorf("of two: %s, %q", r.Verdict, r.Because)
	}
	// An experiment's own function sees the medians, too.
	e.Judge = func(rows []Row) (Verdict, string) {
		for _, r := range rows {
			if !r.OK {
				return Disagrees, "its own"
			}
		}
		return AgreesOrder, "all are OK"
	}
	if r := run(t, e, Options{Seed: 1, Seeds: EnoughSeeds}); r.Verdict != AgreesOrder || r.Because != "all are OK" {
		t.Errorf("by its own: %s, %q", r.Verdict, r.Because)
	}
}

func TestSeeds_rowsAreMatchedByLabelAndMetric(t *testing.T) {
	a, b, c := Within("a", "m", 1, 1, 1), Within("b", "m", 2, 2, 1), Within("a", "n", 3, 3, 1)
	for _, test := range []struct {
		name          string
		first, second []Row
		want          []string // of the error; nil: none
	}{
		{"in another order", []Row{a, b, c}, []Row{c, a, b}, nil},
		{"missing", []Row{a, b}, []Row{a}, []string{"seed 2 has 0 rows", `"b", m`, "--seeds=1"}},
		{"one more", []Row{a}, []Row{a, c}, []string{"seed 1 has 0 rows", `"a", n`, "--seeds=1"}},
		{"another metric", []Row{a, b}, []Row{c, b}, []string{"seed 2 has 0 rows", `"a", m`}},
		{"twice", []Row{a, a}, []Row{a, a}, []string{"seed 1 has 2 rows", `"a", m`}},
	} {
		e := eachSeed(func(seed uint64) []Row {
			if seed == 1 {
				return test.first
			}
			return test.second
		})
		r, err := Run(t.Context(), e, Options{Seed: 1, Seeds: 2})
		if test.want == nil {
			if err != nil || !slices.EqualFunc(r.Rows, test.first, func(x, y Row) bool { return x.Label == y.Label && x.Ours == y.Ours }) {
				t.Errorf("%s: %v, %v", test.name, r, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s: no error", test.name)
			continue
		}
		for _, s := range append(test.want, "x: ") {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: no %q in %v", test.name, s, err)
			}
		}
	}
}

func TestSeeds_errorsNameTheSeed(t *testing.T) {
	boom := errors.New("boom")
	e := Experiment{Name: "x", Run: func(_ context.Context, o Options) (*Outcome, error) {
		if o.Seed == 6 {
			return nil, boom
		}
		return &Outcome{Rows: []Row{Within("a", "b", 1, 1, 1)}}, nil
	}}
	if _, err := Run(t.Context(), e, Options{Seed: 5, Seeds: 3}); !errors.Is(err, boom) || !strings.Contains(err.Error(), "x: seed 6: ") {
		t.Errorf("%v", err)
	}
	if _, err := Run(t.Context(), e, Options{Seed: 6}); !errors.Is(err, boom) || strings.Contains(err.Error(), "seed") {
		t.Errorf("of one: %v", err)
	}
	if _, err := Run(t.Context(), figures(func(x float64) Row { return Within("a", "b", 1, x, 1) }, 1, math.NaN()), Options{Seed: 1, Seeds: 2}); err == nil || !strings.Contains(err.Error(), `seed 2: row "a", b`) {
		t.Errorf("no number: %v", err)
	}
}

func TestSeeds_settingsAndCharts(t *testing.T) {
	e := eachSeed(func(uint64) []Row { return []Row{Within("a", "b", 1, 1, 1)} })
	inner := e.Run
	e.Setting = []Parameter{{Name: "window", Value: "64 KB"}}
	e.Run = func(ctx context.Context, o Options) (*Outcome, error) {
		out, err := inner(ctx, o)
		out.Settings = []Parameter{{Name: "fabric", Value: "k=4"}, {Name: "links down", Value: fmt.Sprint(o.Seed * 10)}}
		out.Charts = []Chart{{Title: fmt.Sprint("seed ", o.Seed)}}
		return out, err
	}
	r := run(t, e, Options{Seed: 7, Seeds: 2})
	want := []Parameter{{Name: "window", Value: "64 KB"}, {Name: "fabric", Value: "k=4"}, {Name: "links down, seed 7", Value: "70"}, {Name: "links down, seed 8", Value: "80"}}
	if !slices.Equal(slices.Concat(r.Stated, r.Inferred, r.OfRun), want) {
		t.Errorf("%v and %v, want %v", r.Stated, r.OfRun, want)
	}
	if len(r.Charts) != 1 || r.Charts[0].Title != "seed 7" {
		t.Errorf("charts: %+v", r.Charts)
	}
	if _, words := page(t, Page{Reports: []*Report{r}}); !strings.Contains(words, "Charts are seed 7’s.") {
		t.Error("the page does not say whose the charts are")
	}
}

func TestSeeds_progressIsOverAll(t *testing.T) {
	e := eachSeed(func(uint64) []Row { return []Row{Within("a", "b", 1, 1, 1)} })
	inner := e.Run
	e.Run = func(ctx context.Context, o Options) (*Outcome, error) {
		o.Progress(1, 2)
		o.Progress(2, 2)
		return inner(ctx, o)
	}
	var told [][2]int
	run(t, e, Options{Seed: 1, Seeds: 2, Progress: func(done, total int) { told = append(told, [2]int{done, total}) }})
	// Before the first, twice and at the end of each seed; the second may go on before the end
	// of the first is told.
	n := len(told)
	if want := [][2]int{{0, 1000}, {250, 1000}, {500, 1000}, {750, 1000}, {1000, 1000}}; n != 7 || !slices.Equal(slices.Compact(told), want) {
		t.Errorf("%d times, %v, want 7 and %v", n, told, want)
	}
}

func TestSeeds_onThePage(t *testing.T) {
	r := run(t, fake(), Options{Seed: 1, Seeds: 3})
	several := []string{"Seeds 1 to 3", "range", "0 of 3", r.Rows[0].span(3), "Charts are"}
	html, words := page(t, Page{Reports: []*Report{r}})
	for _, s := range several {
		if !strings.Contains(words, s) {
			t.Errorf("no %q on the page", s)
		}
	}
	if head, cells := strings.Count(html, "<th>range</th>"), strings.Count(html, " of 3</td>"); head != 1 || cells != 2 {
		t.Errorf("%d heads, %d statements' cells", head, cells)
	}
	_, words = page(t, Page{Reports: []*Report{run(t, fake(), Options{Seed: 1, Seeds: 1})}})
	for _, s := range several {
		if strings.Contains(words, s) {
			t.Errorf("%q on the page of one seed", s)
		}
	}
}
