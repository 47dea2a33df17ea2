package parts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"weft/bench/papers"
)

var build = Build{Commit: "770004a6", Go: "go1.26", Platform: "linux/amd64"}

func unit(name string, seed uint64) papers.Unit {
	e := papers.Experiment{Name: name, Setting: []papers.Parameter{{Name: "window", Value: "64 KB", Chosen: true, Why: "because"}, {Name: "links", Value: "1 Gbit/s"}}}
	return papers.Unit{Subject: papers.Subject{Experiment: e}, Seed: seed}
}

func part(ours float64) *papers.Part {
	return &papers.Part{Outcome: &papers.Outcome{Rows: []papers.Row{papers.Within("a", "b", 1, ours, 10)}, PacketHops: 7}, CPUS: 1.5, Machine: "here"}
}

// Whatever a result depends on changes the name of its file, and nothing else does.
func TestKey_isOfAllThatAResultDependsOn(t *testing.T) {
	want := KeyOf(build, unit("drb-f9", 3), false)
	if again := KeyOf(build, unit("drb-f9", 3), false); again != want || again.File() != want.File() {
		t.Errorf("%v and %v of the same", again, want)
	}
	// Fixed for good: a change makes everything that was kept run again. Change format, then.
	if want.File() != fixed {
		t.Errorf("%s, want %s", want.File(), fixed)
	}
	others := map[string]Key{}
	for what, change := range map[string]func(b *Build, u *papers.Unit, quick *bool){
		"commit":     func(b *Build, _ *papers.Unit, _ *bool) { b.Commit = "770004a7" },
		"executable": func(b *Build, _ *papers.Unit, _ *bool) { b.Commit, b.Executable = "", "770004a6" },
		"compiler":   func(b *Build, _ *papers.Unit, _ *bool) { b.Go = "go1.27" },
		"platform":   func(b *Build, _ *papers.Unit, _ *bool) { b.Platform = "linux/arm64" },
		"experiment": func(_ *Build, u *papers.Unit, _ *bool) { u.Name = "drb-f10" },
		"seed":       func(_ *Build, u *papers.Unit, _ *bool) { u.Seed = 4 },
		"form":       func(_ *Build, _ *papers.Unit, quick *bool) { *quick = true },
		"mutant":     func(_ *Build, u *papers.Unit, _ *bool) { u.Mutant = &papers.Mutant{Name: "at random"} },
		"value":      func(_ *Build, u *papers.Unit, _ *bool) { u.Setting[0].Value = "256 KB" },
		"reason":     func(_ *Build, u *papers.Unit, _ *bool) { u.Setting[0].Why = "no idea" },
		"inferred":   func(_ *Build, u *papers.Unit, _ *bool) { u.Setting[1].Chosen = true },
	} {
		b, u, quick := build, unit("drb-f9", 3), false
		change(&b, &u, &quick)
		k := KeyOf(b, u, quick)
		for other, of := range others {
			if of.File() == k.File() {
				t.Errorf("%s and %s have the same file", what, other)
			}
		}
		if k.File() == want.File() {
			t.Errorf("%s changes nothing", what)
		}
		others[what] = k
	}
}

const fixed = "drb-f9-seed3-f6e1e1a9cff3727c.json"

func encoded(t *testing.T, k Key, p *papers.Part) []byte {
	t.Helper()
	b, err := Encode(k, p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecode(t *testing.T) {
	k, p := KeyOf(build, unit("drb-f9", 3), true), part(1.05)
	b := encoded(t, k, p)
	gotKey, got, err := Decode(k.File(), b)
	if err != nil || gotKey != k || got.CPUS != 1.5 || got.Machine != "here" || got.Outcome.PacketHops != 7 || !got.Outcome.Rows[0].OK {
		t.Errorf("%v: %+v, %+v", err, gotKey, got)
	}
	if again := encoded(t, gotKey, got); !bytes.Equal(again, b) {
		t.Errorf("%s is read and written as %s", b, again)
	}
	// No byte can be lost or changed. Only white space around it all says nothing.
	for i := range len(b) - 1 {
		changed := slices.Clone(b)
		changed[i] ^= 1
		if gotKey, got, err := Decode(k.File(), changed); err == nil && !bytes.Equal(encoded(t, gotKey, got), b) {
			t.Fatalf("byte %d changed: %s is read", i, changed)
		}
		if _, _, err := Decode(k.File(), b[:i]); err == nil {
			t.Fatalf("the first %d bytes are read", i)
		}
	}
	reformatted := func(change func(*content)) []byte {
		c := content{k, part(1)}
		change(&c)
		inner, err1 := json.Marshal(c)
		outer, err2 := json.Marshal(file{sum(inner), inner})
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		return outer
	}
	for want, bad := range map[string][]byte{
		"torn or was changed": []byte(`{"sha256":"00","part":{}}`),
		"is no part of a run": []byte(`{"experiment":"drb-f9"}`),
		"has format 2":        reformatted(func(c *content) { c.Key.Format = 2 }),
		"another name":        reformatted(func(c *content) { c.Key.Seed = 4 }),
		"is of another weft":  reformatted(func(c *content) { c.Part.Outcome.Rows = nil }),
		"has no outcome":      reformatted(func(c *content) { c.Part.Outcome = nil }),
	} {
		if _, _, err := Decode(k.File(), bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// run is the files of a run of two experiments with two seeds, in so many directories.
func run(t *testing.T, b Build, quick bool, dirs int) []fstest.MapFS {
	t.Helper()
	list := []papers.Experiment{unit("drb-f9", 0).Experiment, unit("luopan-f2", 0).Experiment}
	o := papers.Options{Seed: 3, Seeds: 2, Quick: quick}
	plan := PlanOf(b, list, false, o)
	text, err := plan.Encode()
	if err != nil {
		t.Fatal(err)
	}
	all := make([]fstest.MapFS, dirs)
	for i, u := range papers.Units(papers.Subjects(list), o) {
		d := &all[i%dirs]
		if *d == nil {
			*d = fstest.MapFS{plan.File(): {Data: text}, ".weft-part-1": {Data: []byte("{")}, "notes.txt": {}}
		}
		k := KeyOf(b, u, quick)
		(*d)[k.File()] = &fstest.MapFile{Data: encoded(t, k, part(float64(i)))}
	}
	return all
}

func named(all []fstest.MapFS) (dirs []Dir) {
	for i, d := range all {
		dirs = append(dirs, Dir{fmt.Sprint("d", i+1), d})
	}
	return dirs
}

func TestMerge(t *testing.T) {
	units := papers.Units(papers.Subjects([]papers.Experiment{unit("drb-f9", 0).Experiment, unit("luopan-f2", 0).Experiment}), papers.Options{Seed: 3, Seeds: 2})
	for dirs := 1; dirs <= 4; dirs++ {
		all := run(t, build, false, dirs)
		all = append(all, maps.Clone(all[0])) // twice the same is once
		m, err := Merge(named(all)...)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Complete(units); err != nil || m.Seed != 3 || m.Seeds != 2 || m.Quick || !slices.Equal(m.Experiments, []string{"drb-f9", "luopan-f2"}) {
			t.Errorf("%v, %+v", err, m.Plan)
		}
		for i, u := range units {
			if p, err := m.Get(u); err != nil || p.Outcome.Rows[0].Ours != float64(i) {
				t.Errorf("%d: %+v, %v", i, p, err)
			}
		}
	}
}

func TestMerge_refuses(t *testing.T) {
	other := build
	other.Commit = "123456"
	first := unit("drb-f9", 3)
	file := KeyOf(build, first, false).File()
	for _, c := range []struct {
		name string
		with func(d []fstest.MapFS) []fstest.MapFS
		want []string
	}{
		{"two commits", func(d []fstest.MapFS) []fstest.MapFS { return append(d, run(t, other, false, 1)[0]) }, []string{"two plans: d1/plan-", "commit 770004a6", "; d3/plan-", "commit 123456"}},
		{"two forms", func(d []fstest.MapFS) []fstest.MapFS { return append(d, run(t, build, true, 1)[0]) }, []string{"two plans", "seeds 3 to 4, in full", "seeds 3 to 4, with --quick"}},
		{"a part of another commit", func(d []fstest.MapFS) []fstest.MapFS {
			k := KeyOf(other, first, false)
			d[1][k.File()] = &fstest.MapFile{Data: encoded(t, k, part(1))}
			return d
		}, []string{"d2/drb-f9-seed3-", "is by commit 123456", "d1/plan-", "wants commit 770004a6"}},
		{"a quick part", func(d []fstest.MapFS) []fstest.MapFS {
			k := KeyOf(build, first, true)
			d[1][k.File()] = &fstest.MapFile{Data: encoded(t, k, part(1))}
			return d
		}, []string{"was run with --quick", "wants it in full"}},
		{"a torn part", func(d []fstest.MapFS) []fstest.MapFS {
			d[0][file].Data = d[0][file].Data[:99]
			return d
		}, []string{"d1/" + file + " is torn or was changed", "remove it, and run its shard again"}},
		{"another figure of one key", func(d []fstest.MapFS) []fstest.MapFS {
			d[1][file] = &fstest.MapFile{Data: encoded(t, KeyOf(build, first, false), part(17))}
			return d
		}, []string{"d1/" + file + " and d2/" + file + " are of one key and differ"}},
		{"a torn plan", func(d []fstest.MapFS) []fstest.MapFS {
			for name, f := range d[0] {
				if strings.HasPrefix(name, plans) {
					f.Data = bytes.Replace(f.Data, []byte(`"seeds": 2`), []byte(`"seeds": 1`), 1)
				}
			}
			return d
		}, []string{"d1/plan-", "torn or was changed"}},
		{"no plan", func(d []fstest.MapFS) []fstest.MapFS {
			return []fstest.MapFS{{file: d[0][file]}}
		}, []string{"there is no plan", "weft sim run --shard"}},
	} {
		_, err := Merge(named(c.with(run(t, build, false, 2)))...)
		if err == nil {
			t.Errorf("%s: merged", c.name)
			continue
		}
		for _, s := range c.want {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: no %q in: %v", c.name, s, err)
			}
		}
	}
}

func TestMerged_missing(t *testing.T) {
	units := papers.Units(papers.Subjects([]papers.Experiment{unit("drb-f9", 0).Experiment, unit("luopan-f2", 0).Experiment}), papers.Options{Seed: 3, Seeds: 2})
	m, err := Merge(named(run(t, build, false, 4)[3:])...)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Complete(units); err == nil || !strings.HasPrefix(err.Error(), "3 of 4 parts are missing: drb-f9, seed 3, in full; drb-f9, seed 4, in full; luopan-f2, seed 3, in full: ") {
		t.Errorf("%v", err)
	}
	moved := unit("luopan-f2", 4)
	moved.Setting[0].Value = "256 KB"
	if err := m.Complete([]papers.Unit{moved}); err == nil || !strings.Contains(err.Error(), "d1/luopan-f2-seed4-") || !strings.Contains(err.Error(), "has the setting "+KeyOf(build, unit("luopan-f2", 4), false).Setting) || !strings.Contains(err.Error(), "this weft's is "+KeyOf(build, moved, false).Setting) {
		t.Errorf("another setting: %v", err)
	}
}
