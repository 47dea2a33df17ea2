package results

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"weft/bench/papers"
)

// report is one as a run makes it.
func report(rows ...papers.Row) *papers.Report {
	return &papers.Report{Experiment: "drb-f6-fattree", Seed: 1, Seeds: 5, CPUS: 12.3456789, Verdict: papers.Judge(rows), Score: papers.ScoreOf(rows), Because: "why", Rows: rows}
}

func TestRun_isReadAsItWasWritten(t *testing.T) {
	order := papers.Order("DRB > RB", 2, 1)
	order.Held, order.Seeds = 5, 5
	r, err := Of(report(papers.Within("DRB", "Mbit/s", 895, 812.3456789, 10), order, papers.Info("RB", "Mbit/s", 7)), "abc", "two cores", true)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 || r.Rows[0].Ours != 812.346 || r.CPUS != 12.3457 || r.Seeds != 5 {
		t.Errorf("kept %+v", r)
	}
	b, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(b), "\n  {\"label\""); lines != 2 {
		t.Errorf("%d lines of rows in\n%s", lines, b)
	}
	trials := []papers.Trial{{Experiment: "drb-f6-fattree", Mutant: "m", Caught: true, By: []string{}}}
	m, err := MutantsJSON(trials)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Read(fstest.MapFS{r.Name(): {Data: b}, MutantsFile: {Data: m}})
	if err != nil {
		t.Fatal(err)
	}
	got := all.Runs["drb-f6-fattree"]
	want, _ := json.Marshal(r)
	if have, _ := json.Marshal(got); string(have) != string(want) || !reflect.DeepEqual(all.Mutants, trials) {
		t.Errorf("read %s, want %s", have, want)
	}
	if papers.Judge(got.Rows) != r.Verdict || papers.ScoreOf(got.Rows) != r.Score {
		t.Error("the rows that are kept give another verdict")
	}
}

func TestOf_refuses(t *testing.T) {
	quick := report()
	quick.Quick = true
	for want, get := range map[string]func() (*Run, error){
		"without --quick": func() (*Run, error) { return Of(quick, "abc", "", false) },
		"commit":          func() (*Run, error) { return Of(report(), "", "", false) },
	} {
		if _, err := get(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := Read(fstest.MapFS{"x.json": {Data: []byte("{")}}); err == nil || !strings.Contains(err.Error(), "x.json") {
		t.Errorf("a broken file: %v", err)
	}
}

func TestMerge_replacesTheSameForm(t *testing.T) {
	trial := func(experiment, mutant string, quick bool) papers.Trial {
		return papers.Trial{Experiment: experiment, Mutant: mutant, Quick: quick}
	}
	got := Merge(
		[]papers.Trial{trial("b", "old", true), trial("b", "old", false), trial("c", "old", true)},
		[]papers.Trial{trial("b", "new", true), trial("a", "new", true)})
	want := []papers.Trial{trial("a", "new", true), trial("b", "new", true), trial("b", "old", false), trial("c", "old", true)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A mutant of the full form decides, and one that neither passes nor is caught does not count.
func TestPassing(t *testing.T) {
	r := Results{Mutants: []papers.Trial{
		{Experiment: "a", Mutant: "quick", Quick: true, Passes: true}, {Experiment: "a", Mutant: "full", Caught: true},
		{Experiment: "b", Mutant: "quick", Quick: true, Passes: true}, {Experiment: "c", Mutant: "none"},
	}}
	for experiment, want := range map[string]string{"a": "[]", "b": "[quick]", "c": "[]", "d": "[]"} {
		if got := fmt.Sprint(r.Passing(experiment)); got != want {
			t.Errorf("%s: %s, want %s", experiment, got, want)
		}
	}
}

func TestTableAndCounts(t *testing.T) {
	all := []papers.Experiment{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}, {Name: "drb-f7"}}
	run := func(v papers.Verdict, within, of int) *Run {
		return &Run{Verdict: v, Score: papers.Score{Within: within, Of: of}, Seed: 1, Seeds: 5, Commit: "0123456789abcdef", Machine: "two cores", CPUS: 100}
	}
	r := &Results{
		Runs: map[string]*Run{
			"a": run(papers.Agrees, 3, 3), "b": run(papers.AgreesOrder, 1, 4), "c": run(papers.Disagrees, 0, 2),
			"d": run(papers.Undecided, 1, 2), "e": run(papers.AgreesOrder, 1, 5),
		},
		Mutants: []papers.Trial{{Experiment: "a", Mutant: "m", Caught: true}, {Experiment: "e", Mutant: "DRB chooses at random", Passes: true}},
	}
	counts := "Of 6 experiments 1 agree within tolerance, 1 agree in sign and order, 1 are not decided by their seeds, 1 disagree, 1 are no evidence, as a mutant passes and 1 are not judged by these rules yet. Of the judged ones 6 of 16 published values are within tolerance."
	if got := r.Counts(all); got != counts {
		t.Errorf("%s\nwant\n%s", got, counts)
	}
	table := r.Table(all)
	for _, line := range []string{
		"| a | agrees within its tolerance | 3 of 3 | 1 of 1 | 0123456789ab, seeds 1 to 5, 100 CPU-s |",
		"| e | agrees in sign and order, but is no evidence: it passes as well where DRB chooses at random | 1 of 5 | 0 of 1 |",
		"| drb-f7 | not judged by these rules yet | - | not tried | `weft sim run drb-f7 --seeds 5 --store bench/papers/results`, about ",
		counts, "Machine: two cores.",
	} {
		if !strings.Contains(table, line) {
			t.Errorf("no %q in\n%s", line, table)
		}
	}
	d := Document{"x.md", "counts", (*Results).Brief}
	text, err := d.Fill("It has <!--sim:counts-->old<!--/sim:counts-->.", r, all)
	if want := "It has <!--sim:counts-->6 experiments: 1 agree, 1 in order, 6 of 16 published figures within tolerance, 1 unjudged<!--/sim:counts-->."; err != nil || text != want {
		t.Errorf("%q, %v, want %q", text, err, want)
	}
	if _, err := d.Fill("nothing", r, all); err == nil || !strings.Contains(err.Error(), "x.md: there is no <!--sim:counts-->") {
		t.Errorf("%v", err)
	}
}

// What is stored is of runs of this form, and has the verdict and the score of its rows.
func TestStored_verdictsFollowFromRows(t *testing.T) {
	all, err := Stored()
	if err != nil {
		t.Fatal(err)
	}
	rank := map[papers.Verdict]int{papers.Disagrees: 1, papers.Undecided: 2, papers.AgreesOrder: 3, papers.Agrees: 4}
	for name, r := range all.Runs {
		if r.Experiment != name || r.Commit == "" || r.Machine == "" || r.Seeds < 1 {
			t.Errorf("%s: %q, commit %q, machine %q, %d seeds", name, r.Experiment, r.Commit, r.Machine, r.Seeds)
		}
		// An experiment may think less of itself than its rows do.
		if by := papers.Judge(r.Rows); rank[r.Verdict] == 0 || rank[r.Verdict] > rank[by] {
			t.Errorf("%s: %s, by its rows %s", name, r.Verdict, by)
		}
		if by := papers.ScoreOf(r.Rows); by != r.Score {
			t.Errorf("%s: %s, by its rows %s", name, r.Score, by)
		}
	}
}
