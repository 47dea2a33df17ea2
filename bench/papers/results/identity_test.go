package results

import (
	"context"
	"testing"

	"weft/bench/papers"
)

// What is stored of a run has its identity, and its rows still have the same.
func TestRun_identified(t *testing.T) {
	e := papers.Experiment{Name: "a", Setting: []papers.Parameter{{Name: "links", Value: "10 Gbit/s"}},
		Run: func(context.Context, papers.Options) (*papers.Outcome, error) {
			return &papers.Outcome{Rows: []papers.Row{
				papers.Within("x", "m", 1.0/3, 1, 10), papers.Between("y", "m", 1.0/3, 2.0/3, 1, 10), papers.Info("z", "m", 1), papers.Order("x > y", 2, 1),
			}}, nil
		}}
	report, err := papers.Run(t.Context(), e, papers.Options{Seed: 1, Seeds: papers.EnoughSeeds})
	if err != nil {
		t.Fatal(err)
	}
	run, err := Of(report, Head{Commit: "abc"})
	if err != nil || run.Identity == "" || run.Identity != report.Identity {
		t.Fatalf("%+v of %q, %v", run, report.Identity, err)
	}
	stored := *run
	stored.Identity = ""
	if got := stored.identified(e); got != run.Identity {
		t.Errorf("by its rows %q, want %q", got, run.Identity)
	}
	e.Setting = nil
	if stored.identified(e) == run.Identity || run.identified(e) != run.Identity {
		t.Error("another setting has the same identity, or the run has lost its own")
	}
}

// Trials of before identities were known certify runs of before, and no others.
func TestStanding_isCertifiedByTrialsOfTheSameIdentity(t *testing.T) {
	for _, c := range []struct {
		run, trial string
		want       standing
	}{{"", "", agrees}, {"1", "1", agrees}, {"", "now", agrees}, {"1", "", notTried}, {"1", "2", notTried}, {"", "2", notTried}, {"1", "now", notTried}} {
		all, r := standingExperiments()
		if c.trial == "now" {
			c.trial = all[0].Identity(r.Runs["a"].Rows)
		}
		r.Runs["a"].Identity, r.Mutants[0].Identity = c.run, c.trial
		if got := r.standing(all[0]); got != c.want {
			t.Errorf("%+v: %s", c, words[got])
		}
	}
}

// Full trials of another identity than the run's say nothing of it, in the table, too.
func TestCaught_isOfTheSameIdentity(t *testing.T) {
	for _, c := range []struct {
		run, trial string
		quick      bool
		want       string
	}{{"1", "1", false, "1 of 1"}, {"1", "2", false, "not tried"}, {"1", "", false, "1 of 1"}, {"1", "2", true, "1 of 1 (quick)"}} {
		all, r := standingExperiments()
		r.Runs["a"].Identity = c.run
		r.Mutants = []Trial{{Trial: papers.Trial{Experiment: "a", Mutant: "m", Caught: true, Quick: c.quick, Identity: c.trial}}}
		if got := r.caught(all[0]); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
