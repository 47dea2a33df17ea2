package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"weft/bench/papers"
)

// What an interrupted run says to be kept is kept: what an earlier run has left counts
// before anything runs, and neither what failed nor what could not be written does.
func TestSimRun_saysWhatIsKept(t *testing.T) {
	var n atomic.Int32
	list := counted(&n)[:3]
	fine := list[0].Run
	var stop context.CancelFunc
	list[1].Run = func(context.Context, papers.Options) (*papers.Outcome, error) { return nil, errUnlucky }
	list[2].Run = func(ctx context.Context, _ papers.Options) (*papers.Outcome, error) {
		stop()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	dir := t.TempDir()
	interrupted := func(cache, want string, names ...string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		stop = cancel
		defer cancel()
		o := simJobs(1, 1)
		o.cache = filepath.Join(dir, cache)
		var out, notes bytes.Buffer
		if err := o.run(ctx, &out, &notes, list, names); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if want += " seeds of experiments are in " + o.cache; !strings.Contains(notes.String(), want) {
			t.Errorf("no %q in %s", want, notes.String())
		}
		if kept, err := filepath.Glob(filepath.Join(o.cache, "*.json")); err != nil || len(kept) != int(want[0]-'0') {
			t.Errorf("kept %v, %v; said %s", kept, err, want)
		}
	}
	interrupted("a", "1 of 3", "all")
	interrupted("a", "1 of 2", "drb-f1", "drill-f2")
	if n.Load() != 1 {
		t.Errorf("%d runs of what was kept", n.Load())
	}
	list[0].Run = func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
		if err := os.RemoveAll(filepath.Join(dir, "b")); err != nil {
			t.Error(err)
		}
		return fine(ctx, o)
	}
	interrupted("b", "0 of 2", "drb-f1", "drill-f2")
}

// Whatever a program was built with is another build, but what the linker and the version
// control say.
func TestBuildOf(t *testing.T) {
	info := func(change func(*debug.BuildInfo)) *debug.BuildInfo {
		i := &debug.BuildInfo{
			Settings: []debug.BuildSetting{{Key: "-compiler", Value: "gc"}, {Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "770004a6"}, {Key: "vcs.time", Value: "today"}, {Key: "vcs.modified", Value: "false"}},
			Deps:     []*debug.Module{{Path: "gvisor.dev/gvisor", Version: "v1"}},
		}
		change(i)
		return i
	}
	with := func(key, value string) func(*debug.BuildInfo) {
		return func(i *debug.BuildInfo) { i.Settings = append(i.Settings, debug.BuildSetting{Key: key, Value: value}) }
	}
	plain := buildOf(info(func(*debug.BuildInfo) {}))
	if plain.Commit != "770004a6" || plain.Settings == "" || !strings.Contains(plain.String(), plain.Settings) {
		t.Errorf("%+v: %s", plain, plain)
	}
	for what, change := range map[string]func(*debug.BuildInfo){
		"-ldflags": with("-ldflags", "-s -w"),
		"time":     func(i *debug.BuildInfo) { i.Settings[3].Value = "tomorrow" },
	} {
		if got := buildOf(info(change)); got != plain {
			t.Errorf("%s: %+v, want %+v", what, got, plain)
		}
	}
	seen := map[string]string{plain.Settings: "plain"}
	for what, change := range map[string]func(*debug.BuildInfo){
		"-gcflags": with("-gcflags", "-N"), "-tags": with("-tags", "purego"), "-race": with("-race", "true"),
		"GOEXPERIMENT": with("GOEXPERIMENT", "greenteagc"), "-tags, too": with("-tags", "other"),
		"another module": func(i *debug.BuildInfo) { i.Deps[0].Version = "v2" },
		"replaced":       func(i *debug.BuildInfo) { i.Deps[0].Replace = &debug.Module{Path: "../gvisor"} },
	} {
		got := buildOf(info(change))
		if of, ok := seen[got.Settings]; ok || got.Commit != plain.Commit {
			t.Errorf("%s: %+v, as %s", what, got, of)
		}
		seen[got.Settings] = what
	}
	if b := buildOf(info(func(i *debug.BuildInfo) { i.Settings[4].Value = "true" })); b.Commit != "" {
		t.Errorf("with changes: %+v", b)
	}
	if b := buildOf(nil); b.Commit != "" || b.Go == "" || b.Platform == "" {
		t.Errorf("of nothing: %+v", b)
	}
}
