package thesis

import (
	"maps"
	"slices"
	"testing"

	"weft/bench/papers"
)

// rowsOf runs an experiment in the small form with replacements.
func rowsOf(t *testing.T, e papers.Experiment, replace ...map[string]string) []papers.Row {
	t.Helper()
	all := make(map[string]string)
	for _, r := range replace {
		maps.Copy(all, r)
	}
	out, err := e.Run(t.Context(), papers.Options{Quick: true, Seed: 1, Jobs: 1, Variant: &papers.Variant{Replace: all}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Rows
}

// passingWith are the rows that a value moves and that are OK with a mutant as well: such a
// value is one with which the row cannot fail. It says how many the value moves.
func passingWith(t *testing.T, e papers.Experiment, v papers.DecisionValue) (rows []string, moved int) {
	t.Helper()
	itself, with := rowsOf(t, e), rowsOf(t, e, v.Replace)
	var mutants [][]papers.Row
	for _, m := range e.Mutants {
		mutants = append(mutants, rowsOf(t, e, v.Replace, m.Replace))
	}
	for i, r := range itself {
		if r.OK || !with[i].OK {
			continue
		}
		moved++
		if slices.ContainsFunc(mutants, func(mutant []papers.Row) bool { return mutant[i].OK }) {
			rows = append(rows, r.Label)
		}
	}
	return rows, moved
}

// With the bump's times that bring the thesis' figures, what must not pass does not.
func TestTimesFollow_isNotVacuous(t *testing.T) {
	for _, e := range []papers.Experiment{figure510(), figure512()} {
		for _, v := range timesFollow.Values {
			if rows, moved := passingWith(t, e, v); moved != 1 || len(rows) > 0 {
				t.Errorf("%s, %s: moves %d rows, of which %q pass with a mutant", e.Name, v.Name, moved, rows)
			}
		}
	}
}

// What was fitted is said where it was: these experiments have as many rows that score.
func TestFitted_scoresNothing(t *testing.T) {
	for _, c := range []struct {
		e       papers.Experiment
		of      int
		verdict papers.Verdict
	}{
		{table47(), 0, papers.OnlyFitted}, // all nine are one slope
		{table32(), 1, papers.Disagrees},  // memory for flows of 16 hosts
		{table22(), 2, papers.Disagrees},
	} {
		r, err := papers.Run(t.Context(), c.e, papers.Options{Quick: true, Seed: 1, Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		if r.Score.Of != c.of || r.Verdict != c.verdict {
			t.Errorf("%s: %s, %s; want %d and %s", c.e.Name, r.Score, r.Verdict, c.of, c.verdict)
		}
	}
}

// What is the closest of many draws to the thesis' own figures is fitted, and spans nothing.
func TestClosest_isFitted(t *testing.T) {
	n := 0
	for _, e := range Experiments() {
		for _, d := range e.Decisions {
			for _, v := range d.Values {
				if v.Replace["mappings"] != closest {
					continue
				}
				if n++; !v.Fitted || d.Ends != "" {
					t.Errorf("%s, %s: fitted %v, ends %q", e.Name, v.Name, v.Fitted, d.Ends)
				}
			}
		}
	}
	if n != 2 {
		t.Errorf("%d decisions draw", n)
	}
}
