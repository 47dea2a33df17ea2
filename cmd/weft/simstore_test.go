package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"weft/bench/papers"
	"weft/bench/papers/results"
	"weft/internal/exitcode"
	"weft/internal/slowtest"
)

// root is the repository's, from this package.
const root = "../.."

// What documents say of the experiments is what is stored.
func TestSimReport_documentsSayWhatIsStored(t *testing.T) {
	stored, err := results.Stored()
	if err != nil {
		t.Fatal(err)
	}
	all := experiments()
	for _, d := range results.Documents {
		text, err := os.ReadFile(filepath.Join(root, d.Path))
		if err != nil {
			t.Fatal(err)
		}
		want, err := d.Fill(string(text), stored, all)
		if err != nil {
			t.Error(err)
		} else if want != string(text) {
			t.Errorf("%s is not what the results say: weft sim report --write . renews it", d.Path)
		}
	}
	for name := range stored.Runs {
		if !slices.ContainsFunc(all, func(e papers.Experiment) bool { return e.Name == name }) {
			t.Errorf("%s.json is of no experiment", name)
		}
	}
	for _, f := range stored.Decisions {
		d, v := decisionOf(all, f.Finding)
		if v == nil {
			t.Errorf("%s has no decision %q with a value %q, which decisions.json has: weft sim decide %s --store bench/papers/results renews it", f.Experiment, f.Parameter, f.Value, f.Experiment)
		} else if f.Fitted != v.Fitted || f.Ends != d.Ends || f.Discrete != d.Discrete {
			t.Errorf("%s, %s, %s: decisions.json says fitted %v, discrete %v, ends %q; the decision is fitted %v, discrete %v, ends %q: weft sim decide %s --store bench/papers/results renews it",
				f.Experiment, f.Parameter, f.Value, f.Fitted, f.Discrete, f.Ends, v.Fitted, d.Discrete, d.Ends, f.Experiment)
		}
	}
}

// What is kept is of the settings that experiments have today: else a run, and what was found beside
// it, says nothing of them. That their rows are the same only a run can tell.
func TestStored_isOfTodaysSettings(t *testing.T) {
	stored, err := results.Stored()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range experiments() {
		run := stored.Runs[e.Name]
		if run == nil {
			continue
		}
		if is := e.Identity(run.Rows); run.Identity != "" && run.Identity != is {
			t.Errorf("%s: its setting has changed since it ran (identity %s, now %s): weft sim run %s --seeds %d --store bench/papers/results", e.Name, run.Identity, is, e.Name, run.Seeds)
		}
	}
}

// decisionOf are the decision and the value that a finding is of; nil: the experiment has none.
func decisionOf(all []papers.Experiment, f papers.Finding) (*papers.Decision, *papers.DecisionValue) {
	for _, e := range all {
		for _, d := range e.Decisions {
			for _, v := range d.Values {
				if e.Name == f.Experiment && d.Parameter == f.Parameter && v.Name == f.Value {
					return &d, &v
				}
			}
		}
	}
	return nil, nil
}

// Each experiment has mutants, of which each is caught, passes, or is beyond the small
// form, as mutants.json says.
func TestSimMutants_areAsStored(t *testing.T) {
	if testing.Short() {
		t.Skip("simulations are left out with -short")
	}
	stored, err := results.Stored()
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range experiments() {
		t.Run(e.Name, func(t *testing.T) {
			if slowtest.Small() && i%6 != 1 {
				t.Skip("one of six runs, all with WEFT_TESTS=all")
			}
			t.Parallel()
			for _, got := range quickTrials(t, e) {
				j := slices.IndexFunc(stored.Mutants, func(s results.Trial) bool {
					return s.Quick && s.Experiment == got.Experiment && s.Mutant == got.Mutant
				})
				if j < 0 {
					t.Fatalf("%s is not in mutants.json: weft sim mutants --quick --store bench/papers/results", got.Mutant)
				}
				if want := stored.Mutants[j]; got.Caught != want.Caught || got.Passes != want.Passes {
					t.Errorf("%s: caught %v, passes %v; stored are %v and %v", got.Mutant, got.Caught, got.Passes, want.Caught, want.Passes)
				}
				if err := unknownPassing([]papers.Trial{got}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// quickTrials runs an experiment and its mutants in the small form.
func quickTrials(t *testing.T, e papers.Experiment) []papers.Trial {
	t.Helper()
	o := simJobs(1, 1)
	o.Quick = true
	b, err := o.batch([]papers.Experiment{e}, withMutants)
	if err != nil {
		t.Fatal(err)
	}
	reports := make([]*papers.Report, len(b.Subjects))
	failed := b.Run(t.Context(), func(i int, r *papers.Report, err2 error) {
		reports[i] = r
		err = errors.Join(err, err2)
	})
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	return papers.Trials(b.Subjects, b.Options, reports)
}

// mutable is an experiment of which neither mutant is told.
func mutable() []papers.Experiment {
	list, about := simulated()[:1], []string{"run"}
	list[0].Mutants = []papers.Mutant{{Name: "none of it", About: about, Replace: map[string]string{"drb": ""}}, {Name: "all of it", About: about}}
	return list
}

// gitDir is a repository with a commit.
func gitDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "a"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Skipf("git: %v: %s", err, out)
		}
	}
	return dir
}

// A mutant that passes and is not known to is a failure, with the status of one.
func TestSimMutants_failsIfAnUnknownOnePasses(t *testing.T) {
	list := mutable()
	list[0].Run = func(context.Context, papers.Options) (*papers.Outcome, error) {
		return &papers.Outcome{Rows: []papers.Row{papers.Order("run", 2, 1)}, Because: "made up"}, nil
	}
	o := simJobs(1, 1)
	var b bytes.Buffer
	err := o.mutants(t.Context(), &b, io.Discard, list, nil)
	if exitcode.Of(err) != exitcode.Failed || !strings.Contains(err.Error(), "drb-f1: passes as well where all of it") || !strings.Contains(b.String(), "2 pass") {
		t.Errorf("%v, and\n%s", err, b.String())
	}
	list[0].Name, list[0].Mutants = "luopan-f2", []papers.Mutant{{Name: "luopan chooses at random", About: []string{"run"}}}
	if err := o.mutants(t.Context(), &b, io.Discard, list, nil); err != nil {
		t.Errorf("a known one: %v", err)
	}
}

// Too few seeds are refused before the run, and trials of fewer than are kept after it.
func TestSimStore_refusesFewSeeds(t *testing.T) {
	dir := gitDir(t)
	o := simJobs(1, 1)
	o.store, o.Seeds = dir, papers.EnoughSeeds-1
	for what, err := range map[string]error{
		"run":     o.run(t.Context(), io.Discard, io.Discard, mutable(), []string{"all"}),
		"mutants": o.mutants(t.Context(), io.Discard, io.Discard, mutable(), nil),
	} {
		if err == nil || !strings.Contains(err.Error(), "--store with --seeds=4") || exitcode.Of(err) != exitcode.Usage {
			t.Errorf("%s: %v", what, err)
		}
	}
	o.Seeds = papers.EnoughSeeds + 1
	if err := o.mutants(t.Context(), io.Discard, io.Discard, mutable(), nil); err != nil {
		t.Fatal(err)
	}
	o.Seeds--
	if err := o.mutants(t.Context(), io.Discard, io.Discard, mutable(), nil); err == nil || !strings.Contains(err.Error(), "cannot replace those of 6") {
		t.Errorf("%v", err)
	}
	kept, err := results.Read(os.DirFS(dir))
	if err != nil || len(kept.Mutants) != 2 || kept.Mutants[0].Seeds != 6 || kept.Mutants[0].Commit == "" || kept.Mutants[0].Machine == "" {
		t.Errorf("%+v, %v", kept, err)
	}
}

func TestSimMutants_prints(t *testing.T) {
	dir := gitDir(t)
	if err := os.WriteFile(filepath.Join(dir, results.MutantsFile), []byte(`[{"experiment":"other","mutant":"stays"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	o := simJobs(1, 1)
	o.json, o.store, o.Seeds = true, dir, papers.EnoughSeeds
	var b bytes.Buffer
	if err := o.mutants(t.Context(), &b, io.Discard, mutable(), nil); err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal(b.Bytes(), &list); err != nil || len(list) != 2 || list[0]["experiment"] != "drb-f1" || list[0]["mutant"] != "none of it" || list[0]["caught"] != false {
		t.Errorf("%v, %v", list, err)
	}
	kept, err := results.Read(os.DirFS(dir))
	if err != nil || len(kept.Mutants) != 3 || kept.Mutants[2].Mutant != "stays" {
		t.Errorf("%+v, %v", kept, err)
	}
	b.Reset()
	o.json, o.store = false, ""
	if err := o.mutants(t.Context(), &b, io.Discard, mutable(), []string{"drb-*"}); err != nil || !strings.Contains(b.String(), "0 of 2 mutants are caught") {
		t.Errorf("%v, %s", err, b.String())
	}
}

// began counts the runs of experiments that would succeed.
func began(n *atomic.Int32) []papers.Experiment {
	list := mutable()
	run := list[0].Run
	list[0].Run = func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
		n.Add(1)
		return run(ctx, o)
	}
	return list
}

// A run whose results cannot be kept does not begin.
func TestSimStore_isCheckedBeforeTheRun(t *testing.T) {
	plain := t.TempDir()
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(plain))
	kept, torn := gitDir(t), gitDir(t)
	if err := os.WriteFile(filepath.Join(torn, results.MutantsFile), []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(plain, "no")
	for _, c := range []struct {
		dir     string
		quick   bool
		mutants bool
		want    string // "": it runs
	}{
		{dir: plain, want: "must be in a git repository"},
		{dir: plain, mutants: true, want: "must be in a git repository"},
		{dir: kept, quick: true, want: "--store with --quick"},
		{dir: gone, want: "must be a directory of results"},
		{dir: gone, mutants: true, want: "must be a directory of results"},
		{dir: torn, mutants: true, want: results.MutantsFile},
		{dir: kept, mutants: true},
		{dir: kept},
		{dir: ""},
	} {
		var n atomic.Int32
		o := simJobs(3, 1)
		o.store, o.Quick, o.Seeds = c.dir, c.quick, papers.EnoughSeeds
		var err error
		if c.mutants {
			err = o.mutants(t.Context(), io.Discard, io.Discard, began(&n), nil)
		} else {
			err = o.run(t.Context(), io.Discard, io.Discard, began(&n), []string{"all"})
		}
		switch {
		case c.want == "" && (err != nil || n.Load() == 0):
			t.Errorf("%+v: %v after %d runs", c, err, n.Load())
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || n.Load() > 0):
			t.Errorf("%+v: %v after %d runs", c, err, n.Load())
		}
	}
}

// A directory in a repository gets the results.
func TestSimRun_stores(t *testing.T) {
	dir := gitDir(t)
	o := simJobs(3, 1)
	o.store, o.Seeds = dir, papers.EnoughSeeds
	if _, _, err := sim(t, o, "drb-f1"); err != nil {
		t.Fatal(err)
	}
	kept, err := results.Read(os.DirFS(dir))
	if err != nil || kept.Runs["drb-f1"] == nil || kept.Runs["drb-f1"].Commit == "" {
		t.Errorf("%+v, %v", kept, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".weft-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestSimReport_write(t *testing.T) {
	wantError(t, "sim report drb-f9 --write .", "runs nothing")
	wantError(t, "sim report --write "+t.TempDir(), "bench/RESULTS.md")
}

// With --stored the experiment itself does not run again, and trials come out the same. With
// other seeds than the kept run has, or another setting, it does.
func TestSimMutants_stored(t *testing.T) {
	var runs atomic.Int32
	list := mutable()
	inner := list[0].Run
	list[0].Run = func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
		if o.Variant == nil {
			runs.Add(1)
		}
		return inner(ctx, o)
	}
	o := simJobs(1, 2)
	o.Seeds = papers.EnoughSeeds
	o.store = gitDir(t)
	if err := o.run(t.Context(), io.Discard, io.Discard, list, nil); err != nil {
		t.Fatal(err)
	}
	trials := func(o simOptions) (text string, itself int32) {
		runs.Store(0)
		var b, notes bytes.Buffer
		if err := o.mutants(t.Context(), &b, &notes, list, nil); err != nil && exitcode.Of(err) != exitcode.Failed {
			t.Fatal(err)
		}
		if told := strings.Contains(notes.String(), "as kept 2"); told != (runs.Load() == 0) {
			t.Errorf("the experiment ran %d times, and notes are %s", runs.Load(), &notes)
		}
		return b.String(), runs.Load()
	}
	want, all := trials(o)
	o.stored = true
	got, none := trials(o)
	if got != want || all != papers.EnoughSeeds || none != 0 {
		t.Errorf("with --stored, %d runs of the experiment:\n%s\nwithout, %d:\n%s", none, got, all, want)
	}
	other := o
	other.Seeds++
	if _, n := trials(other); n != papers.EnoughSeeds+1 {
		t.Errorf("with another number of seeds %d runs of the experiment, want %d", n, other.Seeds)
	}
	list[0].Setting = append(slices.Clone(list[0].Setting), papers.Parameter{Name: "another", Value: "setting"})
	if _, n := trials(o); n != papers.EnoughSeeds {
		t.Errorf("with another setting %d runs of the experiment, want %d", n, o.Seeds)
	}
	o.store = ""
	if err := o.mutants(t.Context(), io.Discard, io.Discard, list, nil); err == nil || !strings.Contains(err.Error(), "--stored") {
		t.Errorf("--stored without --store: %v", err)
	}
}
