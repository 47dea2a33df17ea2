package papers

import (
	"context"
	"slices"
	"strings"
	"testing"

	"weft/bench/sim"
	"weft/policy"
)

// mutable is an experiment whose figures depend on what it runs.
func mutable(rows func(o Options) []Row, mutants ...Mutant) Experiment {
	return Experiment{Name: "x", Mutants: mutants, Run: func(_ context.Context, o Options) (*Outcome, error) {
		return &Outcome{Rows: rows(o)}, nil
	}}
}

// tryMutants runs an experiment and its mutants, and says which are caught.
func tryMutants(t *testing.T, e Experiment, o Options) ([]Trial, error) {
	subjects, err := WithMutants([]Experiment{e})
	if err != nil {
		return nil, err
	}
	return Trials(subjects, o, reportsOf(t, subjects, o)), nil
}

// reportsOf runs subjects.
func reportsOf(t *testing.T, subjects []Subject, o Options) []*Report {
	t.Helper()
	reports := make([]*Report, len(subjects))
	b := Batch{Subjects: subjects, Options: o}
	if err := b.Run(t.Context(), func(i int, r *Report, err error) {
		if reports[i] = r; err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return reports
}

func TestTrials(t *testing.T) {
	null := Mutant{Name: "drb is rb", About: strings.Fields("a b c d e"), Replace: map[string]string{"drb": "rb"}}
	goodput := func(o Options) float64 { return map[string]float64{"drb": 900, "rb": 800}[o.As("drb")] }
	for _, c := range []struct {
		name   string
		rows   func(o Options) []Row
		caught bool
		told   []string
		passes bool
	}{
		{"a value tells it", func(o Options) []Row { return []Row{Within("a", "b", 895, goodput(o), 10)} }, true, []string{"a, b"}, false},
		{"too wide a tolerance", func(o Options) []Row { return []Row{Within("a", "b", 895, goodput(o), 50)} }, false, nil, true},
		{"an order tells it", func(o Options) []Row { return []Row{Order("a", goodput(o), 850)} }, true, []string{"a, order"}, false},
		{"an order that has nothing to do with it", func(Options) []Row { return []Row{Order("a", 2, 1)} }, false, nil, true},
		{"a value is lost and the order stays", func(o Options) []Row { return []Row{Within("a", "b", 895, goodput(o), 10), Order("c", 2, 1)} }, false, []string{"a, b"}, true},
		{"a bound alone tells it", func(o Options) []Row { return []Row{AtLeast("a", "b", 850, goodput(o), 0)} }, true, []string{"a, b"}, false},
		{"fails as the experiment itself does", func(Options) []Row { return []Row{Within("a", "b", 1, 2, 1)} }, false, nil, false},
		{"what the paper has not tells nothing", func(o Options) []Row { return []Row{Info("a", "b", goodput(o)), Within("c", "d", 1, 2, 1)} }, false, nil, false},
		{"many rows, of which few are named", func(o Options) (rows []Row) {
			for _, label := range strings.Fields("a b c d e") {
				rows = append(rows, Within(label, "m", 900, goodput(o), 1))
			}
			return rows
		}, true, []string{"a, m", "b, m", "c, m"}, false},
		{"tells it, and disagrees itself", func(o Options) []Row {
			return []Row{Within("a", "b", 895, goodput(o), 10), Within("c", "d", 1, 2, 1)}
		}, false, []string{"a, b"}, false},
		{"a row about something else tells it", func(o Options) []Row { return []Row{Within("x", "y", 895, goodput(o), 10)} }, false, nil, false},
		{"an order that the mutant leaves open", func(o Options) []Row {
			return []Row{Within("c", "d", 1, 2, 1), Order("a", goodput(o), 850+100*float64(o.Seed%5)*map[string]float64{"rb": -1}[o.As("drb")])}
		}, true, []string{"a, order"}, false},
	} {
		trials, err := tryMutants(t, mutable(c.rows, null), Options{Seed: 7, Seeds: EnoughSeeds})
		if err != nil || len(trials) != 1 {
			t.Fatalf("%s: %v, %v", c.name, trials, err)
		}
		if got := trials[0]; got.Caught != c.caught || got.Passes != c.passes || !slices.Equal(got.By, append([]string{}, c.told...)) || got.Mutant != null.Name || got.Seeds != EnoughSeeds || got.Seed != 7 {
			t.Errorf("%s: %+v, want caught %v by %v", c.name, got, c.caught, c.told)
		}
	}
	if _, err := tryMutants(t, mutable(func(Options) []Row { return []Row{Order("a", 2, 1)} }, Mutant{Name: "m"}), Options{}); err == nil || !strings.Contains(err.Error(), `x: mutant "m": About is empty`) {
		t.Errorf("%v", err)
	}
	if _, err := tryMutants(t, mutable(nil), Options{}); err == nil || !strings.Contains(err.Error(), "x: has no mutant") {
		t.Errorf("%v", err)
	}
}

// What a variant replaces loses the options of what it was, and the rest stays.
func TestOptions_varied(t *testing.T) {
	c := sim.Config{Policy: "luopan", Seed: 3, Options: policy.Options{Samples: 2}, Spray: sim.SprayOptions{RackSamples: true}}
	o := Options{Variant: &Variant{Replace: map[string]string{"luopan": "rand"}, Tune: func(c *sim.Config) { c.Seed++ }}}
	if got := o.varied(c); got.Policy != "rand" || got.Options.Samples != 0 || got.Spray.RackSamples || got.Seed != 4 {
		t.Errorf("%+v", got)
	}
	c.Policy = "presto"
	if got := o.varied(c); got.Policy != "presto" || got.Options.Samples != 2 || got.Seed != 4 {
		t.Errorf("another policy: %+v", got)
	}
	if got := (Options{}).varied(c); got.Seed != 3 || got.Policy != "presto" {
		t.Errorf("without a variant: %+v", got)
	}
}
