package results

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"weft/bench/papers"
)

// finding is of a value of a buffer that moves and breaks rows of figure 1.2345678.
func finding(experiment, value string, seeds int, moved, unmoved, broken []string) papers.Finding {
	figures := func(ours float64, labels []string) []papers.Figure {
		all := []papers.Figure{}
		for _, l := range labels {
			paper := 2.0
			all = append(all, papers.Figure{Label: l, Metric: "m", Paper: &paper, Itself: 1.2345678, Ours: ours})
		}
		return all
	}
	return papers.Finding{Experiment: experiment, Parameter: "buffer", Value: value, Seed: 1, Seeds: seeds,
		Moved: figures(2.00000001, moved), Unmoved: figures(1, unmoved), Broken: figures(3, broken)}
}

// Few seeds will do, the quick form will not, and what is kept is read as it was written.
func TestFindings_areReadAsTheyWereWritten(t *testing.T) {
	here := Head{Commit: "abc", Machine: "a laptop"}
	f := finding("b", "200 KB", 1, []string{"x"}, nil, []string{"y", "z"})
	f.Machines = []string{"elsewhere"}
	found, err := Findings([]papers.Finding{f, finding("b", "400 KB", 1, nil, []string{"x"}, nil)}, here)
	if err != nil || len(found) != 2 || found[0].Commit != "abc" || found[0].Machine != "elsewhere" || found[1].Machine != "a laptop" {
		t.Fatalf("%+v, %v", found, err)
	}
	if m := found[0].Moved[0]; m.Itself != 1.23457 || m.Ours != 2 || f.Moved[0].Itself != 1.2345678 {
		t.Errorf("%+v of %+v", m, f.Moved[0])
	}
	all, err := Merge([]Finding{{Finding: finding("b", "old", 1, nil, nil, nil)}, {Finding: finding("a", "stays", 3, nil, nil, nil)}}, found)
	if err != nil || len(all) != 3 || all[0].Value != "stays" || all[1].Value != "200 KB" {
		t.Fatalf("%+v, %v", all, err)
	}
	b, err := ListJSON(all)
	if err != nil || strings.Count(string(b), "\n  {\"experiment\"") != 3 {
		t.Fatalf("%v, and\n%s", err, b)
	}
	all[1].Machines = nil // is the head's
	read, err := Read(fstest.MapFS{DecisionsFile: {Data: b}})
	if err != nil || !reflect.DeepEqual(read.Decisions, all) || len(read.Runs) > 0 {
		t.Errorf("%v: %+v, want %+v", err, read, all)
	}
	if _, err := Merge([]Finding{{Finding: finding("b", "old", 2, nil, nil, nil)}}, found); err == nil || !strings.Contains(err.Error(), "b: decisions of --seeds=1 cannot replace those of 2") {
		t.Errorf("%v", err)
	}
	f.Quick = true
	if _, err := Findings([]papers.Finding{f}, here); err == nil || !strings.Contains(err.Error(), "b: a quick run decides nothing") {
		t.Errorf("%v", err)
	}
	if _, err := Findings([]papers.Finding{finding("b", "v", 1, nil, nil, nil)}, Head{}); err == nil || !strings.Contains(err.Error(), "commit") {
		t.Errorf("%v", err)
	}
}

// decidedResults are those of standingExperiments, where decisions say something of b to e:
// all of c and e, half of b, and nothing of d.
func decidedResults() ([]papers.Experiment, *Results) {
	all, r := standingExperiments()
	values := func(names ...string) (values []papers.DecisionValue) {
		for _, n := range names {
			values = append(values, papers.DecisionValue{Name: n})
		}
		return values
	}
	for i := range all {
		all[i].Decisions = []papers.Decision{{Parameter: "buffer", About: []string{"x", "y"}, Values: values("200 KB", "400 KB")}}
	}
	all[2].Decisions[0].Ends, all[2].Decisions[0].Nearest = "ports have no more", "and no less"
	for _, name := range []string{"b", "c", "d", "e"} {
		r.Runs[name].Rows = []papers.Row{papers.Within("x", "m", 2, 1, 10), papers.Within("y", "m", 2, 1, 10), papers.Within("z", "m", 1, 1, 10)}
		r.Runs[name].Score = papers.Score{Within: 1, Of: 3}
	}
	for _, f := range []papers.Finding{
		finding("b", "200 KB", 3, []string{"x"}, []string{"y"}, nil), finding("b", "400 KB", 3, nil, []string{"x", "y"}, nil),
		finding("c", "200 KB", 1, []string{"x"}, []string{"y"}, nil), finding("c", "400 KB", 1, nil, []string{"x", "y"}, nil),
		finding("d", "200 KB", 2, nil, []string{"x", "y"}, nil), finding("d", "400 KB", 2, nil, []string{"x", "y"}, nil),
		finding("e", "200 KB", 2, []string{"x", "y"}, nil, nil),
	} {
		for _, e := range all {
			if e.Name == f.Experiment {
				f.Identity = r.Runs[e.Name].identified(e)
			}
		}
		r.Decisions = append(r.Decisions, Finding{Finding: f})
	}
	return all, r
}

func TestTableAndCounts_sayWhatIsDecided(t *testing.T) {
	all, r := decidedResults()
	table := r.Table(all)
	for _, line := range []string{
		"| a | agrees within its tolerance | ",
		"| b | agrees in sign and order; 1 of 2 rows out decided by 3 seeds: buffer 200 KB moves 1 row | ",
		"| c | disagrees; decided by 1 seed: buffer 200 KB moves 1 row; no plausible buffer moves 1 row | ",
		"| d | is not decided by so few seeds; none of 2 rows out decided | ",
		"| e | agrees in sign and order, but is no evidence: it passes as well where m; decided by 2 seeds: buffer 200 KB moves 2 rows | ",
	} {
		if !strings.Contains(table, line) {
			t.Errorf("no %q in\n%s", line, table)
		}
	}
	// What is no evidence, or has untried mutants, is neither decided nor to be.
	if got, want := r.Counts(all), "1 of 3 that disagree, are undecided or have rows out are decided; of their 6 rows out 2 are moved by another value of an open parameter, and 1 by no plausible one."; !strings.Contains(got, want) || !strings.Contains(table, got) {
		t.Errorf("no %q in %s, or not in\n%s", want, got, table)
	}
	// Findings of another setting are of no use, whether the run knows its own or not.
	open := "0 of 3 that disagree"
	all[2].Setting = []papers.Parameter{{Name: "links", Value: "10 Gbit/s"}}
	if got := r.Counts(all); !strings.Contains(got, open) {
		t.Errorf("of another setting: no %q in %s", open, got)
	}
	all[2].Setting = nil
	r.Runs["c"].Identity = "another"
	if got := r.Counts(all); !strings.Contains(got, open) {
		t.Errorf("of another run: no %q in %s", open, got)
	}
	// A row that only a fit moves is said, and not counted.
	r.Runs["c"].Identity = ""
	all[2].Decisions[0].Ends, all[2].Decisions[0].Values[0].Fitted = "", true
	if got, want := r.Table(all), "| c | disagrees; none of 2 rows out decided; 1 row moved by a fit, which decides nothing: buffer 200 KB moves 1 row"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	// While nothing was tried nothing is said of it.
	r.Decisions = nil
	if got := r.Counts(all) + r.Brief(all); strings.Contains(got, "are decided") {
		t.Error(got)
	}
}

// What is stored of decisions is of full runs, and of rows that were out.
func TestStored_decisions(t *testing.T) {
	stored, err := Stored()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range stored.Decisions {
		if f.Quick || f.Commit == "" || f.Machine == "" || f.Seeds < 1 || len(f.Moved)+len(f.Unmoved) > f.Out {
			t.Errorf("%s, %s %s: commit %q, machine %q, %d seeds, %d and %d of %d rows", f.Experiment, f.Parameter, f.Value, f.Commit, f.Machine, f.Seeds, len(f.Moved), len(f.Unmoved), f.Out)
		}
	}
}
