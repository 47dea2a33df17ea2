package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"weft/bench/papers"
	"weft/bench/papers/results"
	"weft/internal/exitcode"
)

// decidable are experiments of which the first has a decision: with a delay of 2 one row
// comes to the paper's, another stays where it is, and a third is of the seed alone; with 3 one
// leaves the paper's. It counts runs.
func decidable(n *atomic.Int32) []papers.Experiment {
	list := simulated()[:2]
	list[0].Decisions = []papers.Decision{{Parameter: "delay", About: []string{"near", "far"}, Ends: "light is not faster", Values: []papers.DecisionValue{
		{Name: "2 µs", Replace: map[string]string{"1": "2"}}, {Name: "3 µs", Replace: map[string]string{"1": "3"}},
	}}}
	list[0].Run = func(_ context.Context, o papers.Options) (*papers.Outcome, error) {
		n.Add(1)
		delay, err := strconv.ParseFloat(o.As("1"), 64)
		return &papers.Outcome{Because: "made up", Rows: []papers.Row{
			papers.Within("near", "µs", 2, delay, 10), papers.Within("far", "µs", 9, delay, 10),
			papers.AtMost("most", "µs", 2, delay, 10), papers.Info("drawn", "part", float64(o.Seed)),
		}}, err
	}
	return list
}

func decided(t *testing.T, o simOptions) string {
	t.Helper()
	var n atomic.Int32
	var b, notes bytes.Buffer
	if err := o.decide(t.Context(), &b, &notes, decidable(&n), nil); err != nil {
		t.Fatal(err)
	}
	if want := "left out, as they have no decision: drb-f2\n"; notes.String() != want {
		t.Errorf("notes: %s, want %s", notes.String(), want)
	}
	return b.String()
}

func TestSimDecide_prints(t *testing.T) {
	const end = "drb-f1: decided by 1 seed: delay 2 µs moves 1 row; no plausible delay moves 1 row\n"
	text := decided(t, simJobs(1, 1))
	for _, s := range []string{
		"drb-f1: delay\nBy 1 seed. The experiment itself: disagrees; 2 rows out, of which the decision speaks of 2. The values span all that is plausible: light is not faster.\n",
		"near             µs      2      1     2 µs (2)\n", "far              µs      9      1     none of 2 µs (2), 3 µs (3)\n",
		"2 µs   disagrees  1      0\n", "3 µs   disagrees  0      1: most, µs (1 to 3)\n",
	} {
		if !strings.Contains(text, s) {
			t.Errorf("no %q in\n%s", s, text)
		}
	}
	if !strings.HasSuffix(text, end) || strings.Contains(text, "drb-f2") {
		t.Errorf("%s", text)
	}
	o := simJobs(1, 1)
	o.json = true
	var list []map[string]any
	if err := json.Unmarshal([]byte(decided(t, o)), &list); err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, key := range strings.Fields("experiment parameter value ends discrete fitted quick seed seeds identity verdict itself out moved unmoved broken run") {
		if _, ok := list[0][key]; !ok {
			t.Errorf("no %s", key)
		}
		delete(list[0], key)
	}
	if len(list[0]) > 0 {
		t.Errorf("unexpected: %v", list[0])
	}
	// The small form decides nothing.
	o.json, o.Quick = false, true
	if text := decided(t, o); !strings.Contains(text, "made smaller") || strings.Contains(text, "decided by") {
		t.Errorf("%s", text)
	}
}

// With -j 2, from what was kept, of which the experiment itself is what weft sim run has
// kept, and merged from shards: the same bytes.
func TestSimDecide_theSameBytes(t *testing.T) {
	var n atomic.Int32
	list := decidable(&n)
	decide := func(o *simOptions, w io.Writer) error { return o.decide(t.Context(), w, io.Discard, list, nil) }
	o := simJobs(4, 1)
	o.Seeds = 2
	want := decided(t, o)
	same := func(what string, runs int32, do func(w io.Writer) error) {
		t.Helper()
		n.Store(0)
		var b bytes.Buffer
		if err := do(&b); err != nil || b.String() != want || n.Load() != runs {
			t.Errorf("%s: %v after %d runs, want %d:\n%s\nwant\n%s", what, err, n.Load(), runs, b.String(), want)
		}
	}
	o.Jobs = 2
	same("-j 2", 6, func(w io.Writer) error { return decide(&o, w) })
	o.cache = t.TempDir()
	if err := o.run(t.Context(), io.Discard, io.Discard, list, []string{"drb-f1"}); err != nil {
		t.Fatal(err)
	}
	same("beside a run", 4, func(w io.Writer) error { return decide(&o, w) })
	same("kept", 0, func(w io.Writer) error { return decide(&o, w) })

	n.Store(0)
	dirs := []string{t.TempDir(), t.TempDir()}
	for i, dir := range dirs {
		o := o
		o.cache, o.shard = dir, shard{i + 1, 2}
		var b bytes.Buffer
		if err := decide(&o, &b); err != nil || b.Len() > 0 {
			t.Fatalf("a share: %v, prints %s", err, b.String())
		}
	}
	if n.Load() != 6 {
		t.Errorf("shares have run %d units, want 6", n.Load())
	}
	same("merged", 0, func(w io.Writer) error { return new(simOptions).merge(t.Context(), w, io.Discard, list, dirs) })
}

// As many seeds as one likes are kept, no fewer than were, and nothing of the small form.
func TestSimDecide_stores(t *testing.T) {
	o := simJobs(1, 1)
	o.store, o.Seeds = gitDir(t), 2
	decided(t, o)
	kept, err := results.Read(os.DirFS(o.store))
	if err != nil || len(kept.Decisions) != 2 || kept.Decisions[0].Seeds != 2 || kept.Decisions[0].Commit == "" || kept.Decisions[1].Value != "3 µs" {
		t.Fatalf("%+v, %v", kept, err)
	}
	var n atomic.Int32
	o.Seeds = 1
	if err := o.decide(t.Context(), io.Discard, io.Discard, decidable(&n), nil); err == nil || !strings.Contains(err.Error(), "drb-f1: decisions of --seeds=1 cannot replace those of 2") {
		t.Errorf("%v", err)
	}
	n.Store(0)
	o.Quick = true
	if err := o.decide(t.Context(), io.Discard, io.Discard, decidable(&n), nil); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "--store with --quick") || n.Load() > 0 {
		t.Errorf("%v after %d runs", err, n.Load())
	}
}

// A decision without values is an error, and so is none at all; what fails leaves the rest.
func TestSimDecide_bad(t *testing.T) {
	var n atomic.Int32
	list := decidable(&n)
	o := simJobs(1, 1)
	decide := func(names ...string) (string, error) {
		var b bytes.Buffer
		err := o.decide(t.Context(), &b, io.Discard, list, names)
		return b.String(), err
	}
	if _, err := decide("drb-f2"); exitcode.Of(err) != exitcode.Usage || !errors.Is(err, papers.ErrNoDecision) {
		t.Errorf("%v", err)
	}
	list[1].Decisions = list[0].Decisions
	list[1].Run = func(context.Context, papers.Options) (*papers.Outcome, error) { return nil, errUnlucky }
	if text, err := decide(); !errors.Is(err, errUnlucky) || !strings.Contains(text, "drb-f1: decided") || strings.Contains(text, "drb-f2") {
		t.Errorf("%v:\n%s", err, text)
	}
	list[1].Decisions = []papers.Decision{{Parameter: "delay", About: []string{"near"}}}
	n.Store(0)
	if _, err := decide(); err == nil || !strings.Contains(err.Error(), `drb-f2: decision "delay": has no values`) || n.Load() > 0 {
		t.Errorf("%v after %d runs", err, n.Load())
	}
}
