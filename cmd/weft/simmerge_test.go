package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"weft/bench/papers"
	"weft/bench/papers/parts"
	"weft/bench/papers/results"
)

// What was asked for decides on the form of JSON and is on the page, merged or not: a
// pattern gives an array, though only one experiment fits.
func TestSimMerge_asWasAsked(t *testing.T) {
	var n atomic.Int32
	list := counted(&n)
	for name, first := range map[string]byte{"drb-f1*": '[', "drb-f1": '{'} {
		run := func(o *simOptions, w io.Writer) error {
			return o.run(t.Context(), w, io.Discard, list, []string{name})
		}
		o := simJobs(7, 1)
		want := outputsOf(t, o, run)
		o.cache, o.shard = t.TempDir(), shard{1, 1}
		if err := run(&o, io.Discard); err != nil {
			t.Fatal(err)
		}
		got := outputsOf(t, simOptions{}, func(m *simOptions, w io.Writer) error {
			return m.merge(t.Context(), w, io.Discard, list, []string{o.cache})
		})
		if got != want || got.json[0] != first || got.command != "weft sim run "+name+" --seed 7" {
			t.Errorf("%s: merged\n%+v\nwant\n%+v", name, got, want)
		}
	}
}

// shared are the shares of seeds of an experiment and its mutants that another machine has run.
func shared(t *testing.T, o simOptions, machine string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	cache, err := newPartCache(dir, o.Quick)
	if err != nil {
		t.Fatal(err)
	}
	cache.machine = machine
	o.cache, o.shard = dir, shard{1, 1}
	batch, err := o.batch(mutable(), withMutants)
	if err != nil {
		t.Fatal(err)
	}
	batch.Keep = cache
	if err := o.runShard(t.Context(), io.Discard, &simTask{mutable(), []string{"all"}, withMutants, batch, cache}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Trials that another machine has run are not stored as this one's.
func TestSimMerge_storesWhoRan(t *testing.T) {
	o := simJobs(1, 1)
	o.Seeds = papers.EnoughSeeds
	m := simOptions{store: gitDir(t)}
	if err := m.merge(t.Context(), io.Discard, io.Discard, mutable(), []string{shared(t, o, "elsewhere: 8 cores")}); err != nil {
		t.Fatal(err)
	}
	kept, err := results.Read(os.DirFS(m.store))
	if err != nil || len(kept.Mutants) != 2 {
		t.Fatalf("%+v, %v", kept, err)
	}
	for _, trial := range kept.Mutants {
		if trial.Machine != "elsewhere: 8 cores" || trial.Commit == "" {
			t.Errorf("%+v", trial)
		}
	}
}

// A plan whose experiments are not what it asks for is refused: a pattern among them is none.
func TestSimMerge_refusesBadPlans(t *testing.T) {
	var n atomic.Int32
	list := counted(&n)
	build, err := thisBuild()
	if err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(p *parts.Plan){
		"its experiments are not what it was asked for": func(p *parts.Plan) { p.Experiments = []string{"*"} },
		"unknown":             func(p *parts.Plan) { p.Asked = []string{"drb-f99"} },
		"seeds is 2000000000": func(p *parts.Plan) { p.Seeds = 2_000_000_000 },
	} {
		p := parts.PlanOf(build, list[:1], []string{"drb-f1"}, alone, papers.Options{Seed: 1})
		spoil(&p)
		b, err := p.Encode()
		dir := t.TempDir()
		if err := errors.Join(err, os.WriteFile(filepath.Join(dir, p.File()), b, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := new(simOptions).merge(t.Context(), io.Discard, io.Discard, list, []string{dir}); err == nil || !strings.Contains(err.Error(), p.File()+" is bad: ") || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// In one directory a merge of a run does not mind what other runs have left, but their plans.
func TestSimMerge_besideOtherRuns(t *testing.T) {
	o := simJobs(1, 1)
	dir := shared(t, o, "elsewhere")
	o.cache, o.shard, o.Seeds = dir, shard{1, 1}, 2
	run := func(o simOptions, w io.Writer) error {
		return o.run(t.Context(), w, io.Discard, mutable(), []string{"all"})
	}
	if err := run(o, io.Discard); err != nil {
		t.Fatal(err)
	}
	merge := func(w io.Writer) error {
		return new(simOptions).merge(t.Context(), w, io.Discard, mutable(), []string{dir})
	}
	err := merge(io.Discard)
	if err == nil || !strings.Contains(err.Error(), "two plans: ") || !strings.Contains(err.Error(), "remove the other plan's file") {
		t.Fatalf("%v", err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "plan-*.json"))
	if err != nil || len(found) != 2 {
		t.Fatalf("%v, %v", found, err)
	}
	for _, name := range found {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(`"with": "mutants"`)) {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got, want bytes.Buffer
	o.cache, o.shard = "", shard{}
	if err := errors.Join(merge(&got), run(o, &want)); err != nil || got.String() != want.String() {
		t.Errorf("%v: merged\n%s\nwant\n%s", err, got.String(), want.String())
	}
}

// A merge names the build that ran and its own, and what is missing.
func TestSimMerge_refuses(t *testing.T) {
	var n atomic.Int32
	o := simJobs(1, 1)
	o.cache, o.shard = t.TempDir(), shard{1, 2}
	if err := o.run(t.Context(), io.Discard, io.Discard, counted(&n), []string{"all"}); err != nil {
		t.Fatal(err)
	}
	merge := func() error {
		return new(simOptions).merge(t.Context(), io.Discard, io.Discard, counted(&n), []string{o.cache})
	}
	if err := merge(); err == nil || !strings.Contains(err.Error(), "2 of 4 parts are missing: drb-f2, seed 1, in full; drill-t1, seed 1, in full") {
		t.Errorf("%v", err)
	}
	found, err := filepath.Glob(filepath.Join(o.cache, "plan-*.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	var plan struct {
		Build struct{ Commit, Executable string }
	}
	b, err := os.ReadFile(found[0])
	if err := errors.Join(err, json.Unmarshal(b, &plan)); err != nil {
		t.Fatal(err)
	}
	// A build is known by a commit or by the program, never by neither.
	if (plan.Build.Commit == "") == (plan.Build.Executable == "") {
		t.Errorf("%+v", plan)
	}
	// What another build gave is whole, and not for this one.
	o.cache, o.shard = t.TempDir(), shard{1, 1}
	batch, err := o.batch(counted(&n), alone)
	if err != nil {
		t.Fatal(err)
	}
	cache := &partCache{dir: o.cache, build: parts.Build{Commit: "770004a6", Go: "go1.26", Platform: "plan9/386"}}
	batch.Keep = cache
	if err := o.runShard(t.Context(), io.Discard, &simTask{counted(&n), []string{"all"}, alone, batch, cache}); err != nil {
		t.Fatal(err)
	}
	if err := merge(); err == nil || !strings.Contains(err.Error(), "by commit 770004a6, go1.26, plan9/386, and this weft is ") {
		t.Errorf("%v", err)
	}
}
