package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"weft/bench/papers"
	"weft/internal/exitcode"
)

// counted are experiments that count how often a seed of them runs. The last one draws.
func counted(n *atomic.Int32) []papers.Experiment {
	list := slices.Concat(simulated()[:2], simulated()[:2])
	list[2].Name, list[3].Name = "drill-f2", "drill-t1"
	for i := range list {
		run := list[i].Run
		list[i].Run = func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
			n.Add(1)
			o.Seed += 1000 * uint64(i)
			out, err := run(ctx, o)
			if err == nil && i == 3 {
				out.Rows = append(out.Rows, papers.Claim("odd", o.Seed%2 == 1), papers.AtMost("most", "part", 0.4, out.Rows[0].Ours, 10))
				out.Charts = []papers.Chart{{Title: "drawn", Lines: []papers.Line{{Name: "a", X: []float64{1, 2}, Y: []float64{out.Rows[1].Ours, math.NaN()}}}}}
			}
			return out, err
		}
	}
	return list
}

// outputs are all that weft sim run and merge can print: text, JSON without what the machine
// took and where it is from, a page without its facts, and the command on it without -j, which shards do not share.
type outputs struct{ text, json, page, command string }

var (
	took  = regexp.MustCompile(`"(wall_s|cpu_s|packet_hops_per_cpu_s|rss_mb)": [^,]*`)
	ofRun = regexp.MustCompile(`(?s),\s*"run": \{.*?\}`)
	flagJ = regexp.MustCompile(` -j [0-9]+`)
)

func outputsOf(t *testing.T, o simOptions, command func(o *simOptions, w io.Writer) error) (all outputs) {
	t.Helper()
	o.output = filepath.Join(t.TempDir(), "page.html")
	var text, js bytes.Buffer
	if err := command(&o, &text); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(o.output)
	if err != nil {
		t.Fatal(err)
	}
	o.json, o.output = true, ""
	if err := command(&o, &js); err != nil {
		t.Fatal(err)
	}
	_, drawn, _ := strings.Cut(string(page), `<section id="`)
	drawn, end, _ := strings.Cut(drawn, `<section><p class="soft">Command`)
	if drawn == "" || end == "" {
		t.Fatalf("the page has no sections, or no command: %s", page)
	}
	_, end, _ = strings.Cut(end, "<pre>")
	by, _, ok := strings.Cut(end, "</pre>")
	if !ok {
		t.Fatalf("the page has no command: %s", page)
	}
	return outputs{text.String(), took.ReplaceAllString(ofRun.ReplaceAllString(js.String(), ""), `"$1": 0`), drawn, flagJ.ReplaceAllString(by, "")}
}

// With -j 1, with -j 2, from what was kept, and merged from shards, in one directory or in
// several: the same bytes.
func TestSimRun_theSameBytes(t *testing.T) {
	var n atomic.Int32
	list := counted(&n)
	run := func(o *simOptions, w io.Writer) error {
		return o.run(t.Context(), w, io.Discard, list, []string{"all"})
	}
	o := simJobs(7, 1)
	o.Seeds = 3
	want := outputsOf(t, o, run)
	same := func(what string, got outputs) {
		t.Helper()
		if got.text != want.text {
			t.Errorf("%s: text\n%s\nwant\n%s", what, got.text, want.text)
		}
		if got.json != want.json {
			t.Errorf("%s: JSON\n%s\nwant\n%s", what, got.json, want.json)
		}
		if got.page != want.page {
			t.Errorf("%s: page\n%s\nwant\n%s", what, got.page, want.page)
		}
		if got.command != want.command || !strings.HasPrefix(want.command, "weft sim run all --seed 7") {
			t.Errorf("%s: command %s, want %s", what, got.command, want.command)
		}
	}
	o.Jobs = 2
	same("-j 2", outputsOf(t, o, run))

	o.cache = filepath.Join(t.TempDir(), "new", "cache")
	n.Store(0)
	same("--cache", outputsOf(t, o, run))
	if n.Load() != 12 {
		t.Errorf("%d runs of 12 seeds for two outputs with a cache", n.Load())
	}

	for _, dirs := range []int{1, 2} {
		n.Store(0)
		var names []string
		for i := range dirs {
			names = append(names, filepath.Join(t.TempDir(), fmt.Sprint(i)))
		}
		for i := range 5 {
			o := o
			o.cache = names[i%dirs]
			if err := o.shard.Set(fmt.Sprintf("%d/5", i+1)); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := run(&o, &out); err != nil || out.Len() > 0 {
				t.Fatalf("shard %d: %v, printed %q", i+1, err, out.String())
			}
		}
		if n.Load() != 12 {
			t.Errorf("shards have run %d units, want 12", n.Load())
		}
		o := simOptions{}
		same(fmt.Sprintf("merged from %d", dirs), outputsOf(t, o, func(o *simOptions, w io.Writer) error { return o.merge(t.Context(), w, io.Discard, list, names) }))
		if n.Load() != 12 {
			t.Error("merge has run something")
		}
	}
}

// So it is with simulations, of one experiment of each paper.
func TestSimRun_theSameBytesOfSimulations(t *testing.T) {
	if testing.Short() {
		t.Skip("simulations are left out with -short")
	}
	names := []string{"drb-f10", "luopan-f13", "drill-f3", "conga-f12", "thesis-t3.1"}
	run := func(o *simOptions, w io.Writer) error { return o.run(t.Context(), w, io.Discard, experiments(), names) }
	o := simJobs(1, 1)
	o.Quick, o.Seeds = true, 2
	want := outputsOf(t, o, run)
	if n := strings.Count(want.text, "\nVerdict: "); n != len(names) {
		t.Fatalf("%d reports of %d:\n%s", n, len(names), want.text)
	}
	o.Jobs, o.cache = 2, t.TempDir()
	for i := range 2 {
		o := o
		o.shard = shard{i + 1, 2}
		if err := run(&o, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	merged := outputsOf(t, simOptions{}, func(o1 *simOptions, w io.Writer) error {
		return o1.merge(t.Context(), w, io.Discard, experiments(), []string{o.cache})
	})
	if merged != want {
		t.Errorf("merged from two shares with -j 2:\n%s\nwith -j 1:\n%s", merged.text, want.text)
	}
}

// Trials of mutants are shared likewise.
func TestSimMutants_shards(t *testing.T) {
	trials := func(do func(o *simOptions, w io.Writer) error, o simOptions) string {
		var b bytes.Buffer
		if err := do(&o, &b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	mutants := func(o *simOptions, w io.Writer) error { return o.mutants(t.Context(), w, io.Discard, mutable(), nil) }
	o := simJobs(1, 2)
	o.Seeds = 2
	want := trials(mutants, o)
	o.cache = t.TempDir()
	for _, s := range []string{"2/2", "1/2"} {
		o := o
		if err := o.shard.Set(s); err != nil {
			t.Fatal(err)
		}
		if got := trials(mutants, o); got != "" {
			t.Errorf("a share prints %s", got)
		}
	}
	got := trials(func(o *simOptions, w io.Writer) error {
		return o.merge(t.Context(), w, io.Discard, mutable(), []string{o.cache})
	}, o)
	if got != want || !strings.Contains(want, "of 2 mutants") {
		t.Errorf("%s, want %s", got, want)
	}
}

// What has ended when a run is interrupted is not run again.
func TestSimRun_goesOnAfterAnInterrupt(t *testing.T) {
	var n atomic.Int32
	list := counted(&n)
	ctx, stop := context.WithCancel(t.Context())
	fine := list[2].Run
	list[2].Run = func(runs context.Context, o papers.Options) (*papers.Outcome, error) {
		stop()
		<-runs.Done()
		return nil, runs.Err()
	}
	o := simJobs(1, 1)
	o.Seeds, o.cache = 2, t.TempDir()
	var out, notes bytes.Buffer
	if err := o.run(ctx, &out, &notes, list, []string{"all"}); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	if !strings.Contains(notes.String(), "4 of 8 seeds of experiments are in "+o.cache) || !strings.Contains(out.String(), "drb-f2: ") || strings.Contains(out.String(), "drill") {
		t.Errorf("%s\n%s", notes.String(), out.String())
	}
	list[2].Run = fine
	n.Store(0)
	out.Reset()
	if err := o.run(t.Context(), &out, io.Discard, list, []string{"all"}); err != nil || n.Load() != 4 {
		t.Errorf("%v, %d runs, want the 4 that had not ended", err, n.Load())
	}
	plain := simJobs(1, 1)
	plain.Seeds = 2
	var want bytes.Buffer
	if err := plain.run(t.Context(), &want, io.Discard, list, []string{"all"}); err != nil || want.String() != out.String() {
		t.Errorf("%v:\n%s\nwant\n%s", err, out.String(), want.String())
	}
	if left, _ := filepath.Glob(filepath.Join(o.cache, unfinished)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A part that was changed is not taken, and not run again without a word.
func TestSimRun_refusesTornParts(t *testing.T) {
	var n atomic.Int32
	o := simJobs(1, 1)
	o.cache = t.TempDir()
	run := func() error { return o.run(t.Context(), io.Discard, io.Discard, counted(&n), []string{"drb-f1"}) }
	if err := run(); err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(o.cache, "drb-f1-seed1-*.json"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%v, %v", kept, err)
	}
	whole, err := os.ReadFile(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	n.Store(0)
	for what, b := range map[string][]byte{"empty": nil, "torn": whole[:len(whole)/2], "changed": bytes.Replace(whole, []byte(`"ours":0`), []byte(`"ours":1`), 1)} {
		if err := os.WriteFile(kept[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run(); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), filepath.Base(kept[0])+" is torn or was changed") || !strings.Contains(err.Error(), "remove it") || n.Load() > 0 {
			t.Errorf("%s: %v after %d runs", what, err, n.Load())
		}
	}
}

func TestSimShard_bad(t *testing.T) {
	for _, s := range []string{"0/2", "3/2", "1", "1/", "a/2", "1/0", "-1/2", "1/2/3", "1/1000000"} {
		wantError(t, "sim run all --cache x --shard "+s, "--shard", "3/8")
	}
	wantError(t, "sim run all --shard 1/2", "--shard=1/2 without --cache")
	for _, f := range []string{"--json", "--report x.html", "--store x --seeds 5"} {
		wantError(t, "sim run all --quick --shard 1/2 --cache "+t.TempDir()+" "+f, "weft sim merge")
	}
	wantError(t, "sim run all --quick --cache /dev/null/x", "--cache")
	wantError(t, "sim merge", "DIRECTORY is missing")
	wantError(t, "sim merge "+t.TempDir()+"/no", "is no directory")
	wantError(t, "sim merge "+t.TempDir(), "there is no plan")
}
