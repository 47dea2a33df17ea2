package parts

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"weft/bench/papers"
)

// planned is a plan's file.
func planned(t *testing.T, p Plan) *fstest.MapFile {
	t.Helper()
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: b}
}

// units are those of run.
func units() []papers.Unit {
	return papers.Units(papers.Subjects([]papers.Experiment{unit("drb-f9", 0).Experiment, unit("luopan-f2", 0).Experiment}), papers.Options{Seed: 3, Seeds: 2})
}

// merge merges and reads all.
func merge(all []fstest.MapFS) (*Merged, error) {
	m, err := Merge(named(all)...)
	if err == nil {
		err = m.Load(units())
	}
	return m, err
}

// run is the files of a run of two experiments with two seeds, in so many directories.
func run(t *testing.T, b Build, quick bool, dirs int) []fstest.MapFS {
	t.Helper()
	list := []papers.Experiment{unit("drb-f9", 0).Experiment, unit("luopan-f2", 0).Experiment}
	o := papers.Options{Seed: 3, Seeds: 2, Quick: quick}
	plan := PlanOf(b, list, []string{"drb-f9", "luopan-f2"}, "", o)
	all := make([]fstest.MapFS, dirs)
	for i, u := range papers.Units(papers.Subjects(list), o) {
		d := &all[i%dirs]
		if *d == nil {
			*d = fstest.MapFS{plan.File(): planned(t, plan), ".weft-part-1": {Data: []byte("{")}, "notes.txt": {}}
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
	for dirs := 1; dirs <= 4; dirs++ {
		all := run(t, build, false, dirs)
		all = append(all, maps.Clone(all[0])) // twice the same is once
		m, err := merge(all)
		if err != nil {
			t.Fatal(err)
		}
		if m.Seed != 3 || m.Seeds != 2 || m.Quick || m.Asked != nil || !slices.Equal(m.Names(), []string{"drb-f9", "luopan-f2"}) {
			t.Errorf("%+v", m.Plan)
		}
		for i, u := range units() {
			if p, err := m.Get(u); err != nil || p.Outcome.Rows[0].Ours != float64(i) {
				t.Errorf("%d: %+v, %v", i, p, err)
			}
		}
	}
}

// What the plan does not name may lie beside it: parts of other builds and of the other
// form, torn ones of other experiments, files of others.
func TestMerge_takesOnlyWhatThePlanNames(t *testing.T) {
	other := build
	other.Commit = "123456"
	all := run(t, build, false, 1)
	d, first := all[0], unit("drb-f9", 3)
	for _, k := range []Key{KeyOf(other, first, false), KeyOf(build, first, true), KeyOf(build, unit("drb-f9", 9), false)} {
		d[k.File()] = &fstest.MapFile{Data: encoded(t, k, part(17))}
	}
	for _, name := range []string{"drb-f9-seed3-0123456789abcdef.json", KeyOf(build, unit("drb-f10", 3), false).File(), "settings.json"} {
		d[name] = &fstest.MapFile{Data: []byte("{")}
	}
	d["pipe.json"] = &fstest.MapFile{Mode: fs.ModeNamedPipe}
	m, err := merge(all)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := m.Get(first); err != nil || p.Outcome.Rows[0].Ours != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A plan keeps what was asked for, and is another one then.
func TestPlan_asked(t *testing.T) {
	list := []papers.Experiment{unit("drb-f9", 0).Experiment}
	plain, pattern := PlanOf(build, list, []string{"drb-f9"}, "", papers.Options{Seed: 1}), PlanOf(build, list, []string{"drb-*"}, "", papers.Options{Seed: 1})
	if plain.File() == pattern.File() || !slices.Equal(plain.Names(), []string{"drb-f9"}) || !slices.Equal(pattern.Names(), []string{"drb-*"}) {
		t.Errorf("%+v and %+v", plain, pattern)
	}
	if a, b := plain.String(), pattern.String(); !strings.HasPrefix(a, "drb-f9, seeds 1 to 1, ") || !strings.HasPrefix(b, "drb-f9 (as drb-*), seeds 1 to 1, ") {
		t.Errorf("%s and %s", a, b)
	}
}

// What a plan says is checked, though its file has the right name.
func TestMerge_refusesBadPlans(t *testing.T) {
	for want, spoil := range map[string]func(p *Plan){
		"seeds is 2000000000, must be from 1 to 100": func(p *Plan) { p.Seeds = 2_000_000_000 },
		"seeds is -3, must be":                       func(p *Plan) { p.Seeds = -3 },
		"seeds is 0, must be":                        func(p *Plan) { p.Seeds = 0 },
		"seed is 18446744073709551615":               func(p *Plan) { p.Seed, p.Seeds = math.MaxUint64, 2 },
		"experiments is empty":                       func(p *Plan) { p.Experiments = nil },
	} {
		p := PlanOf(build, []papers.Experiment{unit("drb-f9", 0).Experiment}, []string{"drb-f9"}, "", papers.Options{Seed: 1})
		spoil(&p)
		_, err := Merge(Dir{"d1", fstest.MapFS{p.File(): planned(t, p)}})
		if err == nil || !strings.HasPrefix(err.Error(), "d1/"+p.File()+" is bad: "+want) || !strings.HasSuffix(err.Error(), ": remove it, and run a shard again, which writes it") {
			t.Errorf("%s: %v", want, err)
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
		{"two commits", func(d []fstest.MapFS) []fstest.MapFS { return append(d, run(t, other, false, 1)[0]) }, []string{"two plans: d1/plan-", "commit 770004a6", "; d3/plan-", "commit 123456", "remove the other plan's file"}},
		{"two forms", func(d []fstest.MapFS) []fstest.MapFS { return append(d, run(t, build, true, 1)[0]) }, []string{"two plans", "seeds 3 to 4, in full", "seeds 3 to 4, with --quick"}},
		{"a part of another commit in place of one", func(d []fstest.MapFS) []fstest.MapFS {
			k := KeyOf(other, first, false)
			d[1][k.File()] = &fstest.MapFile{Data: encoded(t, k, part(1))}
			delete(d[0], file)
			return d
		}, []string{"1 of 4 parts are missing: drb-f9, seed 3, in full (d2/drb-f9-seed3-", " is by commit 123456, go1.26, linux/amd64)"}},
		{"a quick part in place of one", func(d []fstest.MapFS) []fstest.MapFS {
			k := KeyOf(build, first, true)
			d[1][k.File()] = &fstest.MapFile{Data: encoded(t, k, part(1))}
			delete(d[0], file)
			return d
		}, []string{"1 of 4 parts are missing", "d2/drb-f9-seed3-", " was run with --quick)"}},
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
		_, err := merge(c.with(run(t, build, false, 2)))
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
	m, err := merge(run(t, build, false, 4)[3:])
	if err == nil || !strings.HasPrefix(err.Error(), "3 of 4 parts are missing: drb-f9, seed 3, in full; drb-f9, seed 4, in full; luopan-f2, seed 3, in full: ") {
		t.Errorf("%v", err)
	}
	moved := unit("luopan-f2", 4)
	moved.Setting[0].Value = "256 KB"
	if err := m.Load([]papers.Unit{moved}); err == nil || !strings.Contains(err.Error(), "d1/luopan-f2-seed4-") || !strings.Contains(err.Error(), "has the setting "+KeyOf(build, unit("luopan-f2", 4), false).Setting+", ") || !strings.Contains(err.Error(), "this weft's is "+KeyOf(build, moved, false).Setting) {
		t.Errorf("another setting: %v", err)
	}
}
