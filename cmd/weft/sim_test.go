package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/bench/papers"
)

var errUnlucky = errors.New("unlucky")

// simulated are experiments like those that weft sim knows, without simulations.
func simulated() []papers.Experiment {
	run := func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
		x := make([]float64, 9)
		err := papers.Each(ctx, o, len(x), func(i int) error {
			x[i] = rand.New(rand.NewPCG(o.Seed, uint64(i))).Float64()
			return nil
		})
		out := &papers.Outcome{PacketHops: 1000, Because: "made up"}
		for i, v := range x {
			out.Rows = append(out.Rows, papers.Within(fmt.Sprint("run ", i), "part", 0.5, v, 10))
		}
		return out, err
	}
	return []papers.Experiment{
		{Name: "drb-f1", Source: "DRB §5", Title: "the first", Run: run, Setting: []papers.Parameter{{Name: "window", Value: "64 KB", Chosen: true}}},
		{Name: "drb-f2", Source: "DRB §6", Title: "the second", Run: run},
		{Name: "luopan-f1", Source: "Luopan §4", Title: "the third", Run: func(context.Context, papers.Options) (*papers.Outcome, error) {
			return nil, errUnlucky
		}},
	}
}

// sim runs weft sim run.
func sim(t *testing.T, o simOptions, names ...string) (out, notes string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err = o.run(t.Context(), &stdout, &stderr, simulated(), names)
	return stdout.String(), stderr.String(), err
}

func simJobs(seed uint64, jobs int) simOptions {
	return simOptions{Options: papers.Options{Seed: seed, Seeds: 1, Jobs: jobs}}
}

func TestSimRun_printsTheSameForTheSameSeed(t *testing.T) {
	one, notes, err := sim(t, simJobs(1, 1), "drb-*")
	if err != nil {
		t.Fatal(err)
	}
	two, _, _ := sim(t, simJobs(1, 2), "drb-*")
	other, _, _ := sim(t, simJobs(2, 1), "drb-*")
	if one != two {
		t.Errorf("-j 1:\n%s\n-j 2:\n%s", one, two)
	}
	if one == strings.ReplaceAll(other, "Seed 2", "Seed 1") {
		t.Error("the seed changes nothing")
	}
	for _, s := range []string{"drb-f1: DRB §5\nthe first\n", "\n\ndrb-f2: DRB §6\nthe second\n", "Inferred by us, and why:\n  window: 64 KB", "Verdict: disagrees; 1 of 9 published values within tolerance.", "Because: made up"} {
		if !strings.Contains(one, s) {
			t.Errorf("no %q in\n%s", s, one)
		}
	}
	if !strings.Contains(notes, "drb-f1: disagrees: ") || !strings.Contains(notes, "CPU") || strings.Contains(one, "CPU") {
		t.Errorf("what it took belongs to standard error, not output: %q", notes)
	}
}

func TestSimRun_severalSeeds(t *testing.T) {
	report := func(seed uint64, seeds int) (r papers.Report) {
		o := simJobs(seed, 1)
		o.json, o.Seeds = true, seeds
		out, _, err := sim(t, o, "drb-f1")
		if err := errors.Join(err, json.Unmarshal([]byte(out), &r)); err != nil {
			t.Fatal(err)
		}
		return r
	}
	one, two, three, all := report(4, 1), report(5, 1), report(6, 1), report(4, 3)
	if all.Seed != 4 || all.Seeds != 3 || one.Seeds != 0 || all.PacketHops != 3*one.PacketHops {
		t.Errorf("%+v", all)
	}
	for i, r := range all.Rows {
		of := []float64{one.Rows[i].Ours, two.Rows[i].Ours, three.Rows[i].Ours}
		slices.Sort(of)
		if *r.Low != of[0] || r.Ours != of[1] || *r.High != of[2] {
			t.Errorf("%s: %v from %v to %v of %v", r.Label, r.Ours, *r.Low, *r.High, of)
		}
	}
	o := simJobs(4, 1)
	o.Seeds, o.output = 3, filepath.Join(t.TempDir(), "page.html")
	first, _, err := sim(t, o, "drb-*")
	if err != nil || !strings.Contains(first, "Seeds 4 to 6: ") || !strings.Contains(first, "range") {
		t.Errorf("%v, and\n%s", err, first)
	}
	o.Jobs = 2
	if second, _, _ := sim(t, o, "drb-*"); first != second {
		t.Errorf("-j 1:\n%s\n-j 2:\n%s", first, second)
	}
	if page, err := os.ReadFile(o.output); err != nil || !bytes.Contains(page, []byte("--seed 4 -j 2 --seeds 3")) {
		t.Errorf("%v, %d bytes without the command", err, len(page))
	}
}

func TestSimRun_jsonIsAnObjectForAName(t *testing.T) {
	o := simJobs(5, 1)
	o.json = true
	out, _, err := sim(t, o, "drb-f1")
	var object map[string]any
	if err := errors.Join(err, json.Unmarshal([]byte(out), &object)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"experiment", "source", "title", "seed", "quick", "wall_s", "cpu_s", "packet_hops", "packet_hops_per_cpu_s", "rss_mb", "verdict", "score", "because", "rows", "stated", "inferred", "of_run", "run", "decided"} {
		if _, ok := object[key]; !ok {
			t.Errorf("no %s", key)
		}
		delete(object, key)
	}
	if len(object) > 0 {
		t.Errorf("unexpected: %v", object)
	}
	for names, want := range map[string]int{"drb-*": 2, "drb-f1 drb-f2": 2, "*f2": 1} {
		out, _, err := sim(t, o, strings.Fields(names)...)
		var list []papers.Report
		if err := errors.Join(err, json.Unmarshal([]byte(out), &list)); err != nil || len(list) != want || len(list[0].Rows) != 9 {
			t.Errorf("%s: %d of %d, %v", names, len(list), want, err)
		}
	}
}

func TestSimRun_goesOnWhenOneFails(t *testing.T) {
	list := simulated()
	list[0], list[2] = list[2], list[0] // the one that fails comes first
	var out bytes.Buffer
	o := simJobs(1, 1)
	err := o.run(t.Context(), &out, io.Discard, list, []string{"all"})
	if !errors.Is(err, errUnlucky) || !strings.Contains(out.String(), "drb-f1: ") || !strings.Contains(out.String(), "drb-f2: ") {
		t.Errorf("%v, and\n%s", err, out.String())
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	out.Reset()
	if err := o.run(ctx, &out, io.Discard, list[1:], []string{"all"}); !errors.Is(err, context.Canceled) || out.Len() > 0 || strings.Contains(err.Error(), "drb-f1") {
		t.Errorf("stopped: %v, and %q", err, out.String())
	}
}

func TestSim_bad(t *testing.T) {
	wantError(t, "sim run", "NAME is missing")
	wantError(t, "sim run nothing", `"nothing"`, "weft sim list")
	wantError(t, "sim run all --seed -1", "--seed")
	wantError(t, "sim run all -j 0", "--jobs=0", "1 or more")
	wantError(t, "sim run all --seeds 0", "--seeds=0", "from 1 to 100")
	wantError(t, "sim report all --seeds 101", "--seeds=101", "from 1 to 100")
	wantError(t, "sim run all --seed 18446744073709551615 --seeds 2", "--seed=18446744073709551615", "--seeds=2")
	wantError(t, "sim report drb-* -o /no/such/directory/x.html", "--output")
	wantError(t, "sim list now", "now")
}

func TestSimRun_saysWhatIsWrong(t *testing.T) {
	if _, _, err := sim(t, simJobs(1, 0), "all"); err == nil || !strings.Contains(err.Error(), "--jobs=0") {
		t.Errorf("%v", err)
	}
	if _, _, err := sim(t, simJobs(1, 1), "drb-f"); err == nil || !strings.Contains(err.Error(), "near it: drb-f1, drb-f2") {
		t.Errorf("%v", err)
	}
}

func TestSimList(t *testing.T) {
	var b bytes.Buffer
	if err := listExperiments(&b, simulated(), false); err != nil {
		t.Fatal(err)
	}
	if want := "drb-f1     DRB §5     the first\n"; !strings.HasPrefix(b.String(), want) {
		t.Errorf("%q, want %q first", b.String(), want)
	}
	b.Reset()
	var list []map[string]any
	if err := errors.Join(listExperiments(&b, simulated(), true), json.Unmarshal(b.Bytes(), &list)); err != nil || len(list) != 3 {
		t.Fatalf("%v, %v", list, err)
	}
	if list[1]["experiment"] != "drb-f2" || list[1]["stated"] == nil || list[1]["inferred"] == nil || list[1]["mutants"] == nil || list[1]["decisions"] == nil {
		t.Errorf("%v", list[1])
	}
}

func TestSimRun_writesAPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.html")
	o := simJobs(1, 1)
	o.output, o.Quick = path, true
	var out bytes.Buffer
	if err := o.run(t.Context(), &out, io.Discard, simulated(), []string{"drb-f1"}); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(page, []byte("weft sim run drb-f1 --seed 1 -j 1 --quick")) {
		t.Errorf("%v, %d bytes", err, len(page))
	}
	if !strings.Contains(out.String(), "drb-f1") {
		t.Errorf("printed %q", out.String())
	}
}

func TestSimReport_writesAPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.html")
	o := simJobs(1, 1)
	o.output, o.Quick = path, true
	if err := o.report(t.Context(), io.Discard, simulated(), []string{"drb-*"}); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"drb-f1", "drb-f2", "the second", "weft sim report drb-* --seed 1 -j 1 --quick", "<!DOCTYPE html>"} {
		if !bytes.Contains(page, []byte(s)) {
			t.Errorf("no %q on the page", s)
		}
	}
	// What fails leaves its error and the rest.
	if err := o.report(t.Context(), io.Discard, simulated(), nil); !errors.Is(err, errUnlucky) {
		t.Errorf("%v", err)
	}
	// Nothing to show leaves the file alone.
	if err := o.report(t.Context(), io.Discard, simulated(), []string{"luopan-f1"}); !errors.Is(err, errUnlucky) {
		t.Errorf("%v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Contains(after, []byte("drb-f1")) {
		t.Error("the page is gone")
	}
	o.output = ""
	if err := o.report(t.Context(), io.Discard, simulated(), nil); err == nil || !strings.Contains(err.Error(), "--output") {
		t.Errorf("%v", err)
	}
}
