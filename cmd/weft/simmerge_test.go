package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"weft/bench/papers/parts"
)

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
	batch, err := o.batch(counted(&n), false)
	if err != nil {
		t.Fatal(err)
	}
	cache := &partCache{dir: o.cache, build: parts.Build{Commit: "770004a6", Go: "go1.26", Platform: "plan9/386"}}
	batch.Keep = cache
	if err := o.runShard(t.Context(), io.Discard, counted(&n), batch, cache); err != nil {
		t.Fatal(err)
	}
	if err := merge(); err == nil || !strings.Contains(err.Error(), "by commit 770004a6, go1.26, plan9/386, and this weft is ") {
		t.Errorf("%v", err)
	}
}
