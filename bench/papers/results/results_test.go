package results

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
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
	r, err := Of(report(papers.Within("DRB", "Mbit/s", 895, 812.3456789, 10), order, papers.Info("RB", "Mbit/s", 7)), Head{Commit: "abc", Machine: "two cores", Modified: true})
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
	trials, err := Trials([]papers.Trial{{Experiment: "drb-f6-fattree", Mutant: "m", Caught: true, Seed: 1, Seeds: 5, By: []string{}}}, r.Head)
	if err != nil || trials[0].Commit != "abc" || trials[0].Machine != "two cores" || !trials[0].Modified {
		t.Fatalf("%+v, %v", trials, err)
	}
	m, err := ListJSON(trials)
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

// What several machines gave is not said to be of the one that stores it.
func TestOf_machines(t *testing.T) {
	here, of := Head{Commit: "abc", Machine: "a laptop"}, []string{"a: 8 cores", "b: 4 cores"}
	r := report(papers.Within("DRB", "Mbit/s", 895, 812, 10))
	for want, machines := range map[string][]string{"a laptop": nil, "a: 8 cores; b: 4 cores": of} {
		r.Machines = machines
		run, err := Of(r, here)
		if err != nil || run.Machine != want {
			t.Errorf("%+v, %v, want %s", run, err, want)
		}
		trials, err := Trials([]papers.Trial{{Experiment: "a", Quick: true, Machines: machines}}, here)
		if err != nil || trials[0].Machine != want {
			t.Errorf("%+v, %v, want %s", trials, err, want)
		}
	}
}

func TestOf_refuses(t *testing.T) {
	quick := report()
	quick.Quick = true
	here := Head{Commit: "abc"}
	one, four := report(), report()
	one.Seeds, four.Seeds = 0, 4
	trial := func(quick bool, seeds int) error {
		_, err := Trials([]papers.Trial{{Experiment: "a", Quick: quick, Seeds: seeds}}, here)
		return err
	}
	run := func(r *papers.Report, h Head) error {
		_, err := Of(r, h)
		return err
	}
	_, nowhere := Trials([]papers.Trial{{Experiment: "a", Seeds: 5}}, Head{})
	for _, c := range []struct {
		want string // "": it is kept
		err  error
	}{
		{"without --quick", run(quick, here)},
		{"commit", run(report(), Head{})},
		{"--seeds=1", run(one, here)},
		{"--seeds=4", run(four, here)},
		{"", run(report(), here)},
		{"commit", nowhere},
		{"--seeds=1", trial(false, 1)},
		{"", trial(true, 1)},
		{"", trial(false, 5)},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil && !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %q", c.err, c.want)
		}
	}
	if _, err := Read(fstest.MapFS{"x.json": {Data: []byte("{")}}); err == nil || !strings.Contains(err.Error(), "x.json") {
		t.Errorf("a broken file: %v", err)
	}
}

func TestMerge_replacesTheSameFormByAsManySeeds(t *testing.T) {
	trial := func(experiment, mutant string, quick bool, seeds int) Trial {
		return Trial{Trial: papers.Trial{Experiment: experiment, Mutant: mutant, Quick: quick, Seeds: seeds}}
	}
	got, err := Merge(
		[]Trial{trial("b", "old", true, 1), trial("b", "old", false, 5), trial("c", "old", true, 1)},
		[]Trial{trial("b", "new", true, 1), trial("a", "new", true, 1)})
	want := []Trial{trial("a", "new", true, 1), trial("b", "new", true, 1), trial("b", "old", false, 5), trial("c", "old", true, 1)}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if got, err := Merge([]Trial{trial("a", "old", false, 5)}, []Trial{trial("a", "new", false, 1)}); err == nil || !strings.Contains(err.Error(), "a: mutants of --seeds=1 cannot replace those of 5") {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := Merge([]Trial{trial("a", "old", false, 5)}, []Trial{trial("a", "new", false, 9)}); err != nil || len(got) != 1 || got[0].Mutant != "new" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A mutant of the full form decides, and one that neither passes nor is caught does not count.
func TestPassing(t *testing.T) {
	r := Results{Mutants: unheaded([]papers.Trial{
		{Experiment: "a", Mutant: "quick", Quick: true, Passes: true}, {Experiment: "a", Mutant: "full", Caught: true},
		{Experiment: "b", Mutant: "quick", Quick: true, Passes: true}, {Experiment: "c", Mutant: "none"},
	})}
	for experiment, want := range map[string]string{"a": "[]", "b": "[quick]", "c": "[]", "d": "[]"} {
		if got := fmt.Sprint(r.Passing(experiment)); got != want {
			t.Errorf("%s: %s, want %s", experiment, got, want)
		}
	}
}

// unheaded are trials from nowhere.
func unheaded(of []papers.Trial) (trials []Trial) {
	for _, t := range of {
		trials = append(trials, Trial{Trial: t})
	}
	return trials
}

// standingExperiments are one of each standing, and a run for each that has one.
func standingExperiments() ([]papers.Experiment, *Results) {
	mutants := []papers.Mutant{{Name: "m"}}
	var all []papers.Experiment
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "drb-f7"} {
		all = append(all, papers.Experiment{Name: name, Mutants: mutants})
	}
	run := func(v papers.Verdict, within, of int) *Run {
		r := &Run{Verdict: v, Seed: 1, Seeds: 5, Head: Head{Commit: "0123456789abcdef", Machine: "two cores"}, CPUS: 100}
		for i := range of {
			ours := 1.
			if i >= within {
				ours = 9
			}
			r.Rows = append(r.Rows, papers.Within("", "", 1, ours, []float64{10, 50}[i%2]))
		}
		r.Score = papers.ScoreOf(r.Rows)
		return r
	}
	trial := func(experiment string, itself papers.Verdict) papers.Trial {
		return papers.Trial{Experiment: experiment, Mutant: "m", Caught: true, Seed: 1, Seeds: 5, Itself: itself}
	}
	passing := trial("e", papers.AgreesOrder)
	passing.Caught, passing.Passes = false, true
	quick := trial("f", papers.AgreesOrder)
	quick.Quick, quick.Seeds = true, 1
	r := &Results{
		Runs: map[string]*Run{
			"a": run(papers.Agrees, 3, 3), "b": run(papers.AgreesOrder, 1, 4), "c": run(papers.Disagrees, 0, 2),
			"d": run(papers.Undecided, 1, 2), "e": run(papers.AgreesOrder, 1, 5), "f": run(papers.AgreesOrder, 2, 3),
		},
		Mutants: unheaded([]papers.Trial{trial("a", papers.Agrees), trial("b", papers.AgreesOrder), passing, quick}),
	}
	r.Runs["b"].Modified, r.Mutants[1].Modified = true, true
	return all, r
}

func TestTableAndCounts(t *testing.T) {
	all, r := standingExperiments()
	counts := "Of 7 experiments 1 agree within tolerance, 1 agree in sign and order, 1 are not decided by their seeds, 1 disagree, 1 are no evidence, as a mutant is not caught, " +
		"1 have mutants not tried with their seeds and 1 are not judged by these rules yet. " +
		"Of those that agree or are in order 4 of 7 published values are within tolerance; of all judged ones 8 of 19, by tolerance 6 of 11 (10 %), 2 of 8 (50 %)."
	if got := r.Counts(all); got != counts {
		t.Errorf("%s\nwant\n%s", got, counts)
	}
	table := r.Table(all)
	for _, line := range []string{
		"| a | agrees within its tolerance | 2 of 2 (10 %), 1 of 1 (50 %) | 1 of 1 | 0123456789ab, seeds 1 to 5, 100 CPU-s |",
		"| b | agrees in sign and order; open: no other value has run | 1 of 2 (10 %), 0 of 2 (50 %) | 1 of 1 with changes | 0123456789ab with changes, seeds 1 to 5, 100 CPU-s |",
		"| e | agrees in sign and order, but is no evidence: it passes as well where m; open: no other value has run |",
		"| f | agrees in sign and order, but mutants not tried: it is no evidence without full trials with these seeds; open: no other value has run | 1 of 2 (10 %), 1 of 1 (50 %) | 1 of 1 (quick) |",
		"| drb-f7 | not judged by these rules yet | - | not tried | `weft sim run drb-f7 --seeds 5 --store bench/papers/results`, about ",
		counts, "Machine: two cores.",
	} {
		if !strings.Contains(table, line) {
			t.Errorf("no %q in\n%s", line, table)
		}
	}
	d := Document{"x.md", "counts", (*Results).Brief}
	text, err := d.Fill("It has <!--sim:counts-->old<!--/sim:counts-->.", r, all)
	if want := "It has <!--sim:counts-->Of 7 experiments the paper's figures come out in 1 and only its order in 1; 1 disagree, and 4 are no evidence. Of 19 published figures 8 are within tolerance<!--/sim:counts-->."; err != nil || text != want {
		t.Errorf("%q, %v, want %q", text, err, want)
	}
	if _, err := d.Fill("nothing", r, all); err == nil || !strings.Contains(err.Error(), "x.md: there is no <!--sim:counts-->") {
		t.Errorf("%v", err)
	}
}

// A run is evidence only by trials of all its mutants, in full, with its seeds and its verdict.
func TestStanding_isCertifiedByFullTrialsOfTheSameSeeds(t *testing.T) {
	for name, spoil := range map[string]func(t *Trial){
		"quick":              func(t *Trial) { t.Quick = true },
		"one seed":           func(t *Trial) { t.Seeds = 1 },
		"other seeds":        func(t *Trial) { t.Seed = 6 },
		"of another setting": func(t *Trial) { t.Identity = "another" },
		"another verdict":    func(t *Trial) { t.Itself = papers.AgreesOrder },
		"of another mutant":  func(t *Trial) { t.Mutant = "other" },
		"another experiment": func(t *Trial) { t.Experiment = "b" },
	} {
		all, r := standingExperiments()
		if got := r.standing(all[0]); got != agrees {
			t.Fatalf("%s", words[got])
		}
		spoil(&r.Mutants[0])
		if got := r.standing(all[0]); got != notTried {
			t.Errorf("%s: %s", name, words[got])
		}
	}
	all, r := standingExperiments()
	r.Mutants[0].Caught = false
	if got := r.standing(all[0]); got != noEvidence || !strings.Contains(r.Table(all), "| a | agrees within its tolerance, but is no evidence: no row about it tells where m |") {
		t.Errorf("neither caught nor passing: %s", words[got])
	}
	r.Runs["a"].Verdict, r.Mutants[0].Itself = papers.OnlyFitted, papers.OnlyFitted
	if got := r.standing(all[0]); got != onlyFitted {
		t.Errorf("with fitted figures alone: %s", words[got])
	}
	all[1].Mutants = append(slices.Clone(all[1].Mutants), papers.Mutant{Name: "second"})
	if got := r.standing(all[1]); got != notTried {
		t.Errorf("one mutant of two: %s", words[got])
	}
}

// What is known to pass passes in a stored form, and all that passes is known.
func TestStored_passingMutantsAreKnown(t *testing.T) {
	stored, err := Stored()
	if err != nil {
		t.Fatal(err)
	}
	passes := make(map[[2]string]bool)
	for _, m := range stored.Mutants {
		// Those without a commit were stored before trials had one.
		if (m.Commit == "") != (m.Machine == "") || m.Seeds < 1 || !m.Quick && m.Seeds < papers.EnoughSeeds {
			t.Errorf("%s, %s: commit %q, machine %q, %d seeds", m.Experiment, m.Mutant, m.Commit, m.Machine, m.Seeds)
		}
		if m.Caught && (m.Passes || m.Itself == papers.Disagrees || m.Told == 0) {
			t.Errorf("%s, %s: is caught by nothing: %+v", m.Experiment, m.Mutant, m)
		}
		if m.Passes {
			passes[[2]string{m.Experiment, m.Mutant}] = true
			if Known(m.Experiment, m.Mutant) == "" {
				t.Errorf("%s passes as well where %s: say why in passing.go", m.Experiment, m.Mutant)
			}
		}
	}
	for key := range known {
		if !passes[key] {
			t.Errorf("%s: %s passes in no stored form: take it off passing.go", key[0], key[1])
		}
	}
}

// What is stored is of runs of this form, and has the verdict and the score of its rows.
func TestStored_verdictsFollowFromRows(t *testing.T) {
	all, err := Stored()
	if err != nil {
		t.Fatal(err)
	}
	rank := map[papers.Verdict]int{papers.Disagrees: 1, papers.OnlyFitted: 1, papers.OnlyBounds: 1, papers.Undecided: 2, papers.AgreesOrder: 3, papers.Agrees: 4}
	for name, r := range all.Runs {
		if r.Experiment != name || r.Commit == "" || r.Machine == "" || r.Seeds < papers.EnoughSeeds {
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
