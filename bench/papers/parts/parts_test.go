package parts

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
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
		"settings":   func(b *Build, _ *papers.Unit, _ *bool) { b.Settings = "1234" },
		"platform":   func(b *Build, _ *papers.Unit, _ *bool) { b.Platform = "linux/arm64" },
		"experiment": func(_ *Build, u *papers.Unit, _ *bool) { u.Name = "drb-f10" },
		"seed":       func(_ *Build, u *papers.Unit, _ *bool) { u.Seed = 4 },
		"form":       func(_ *Build, _ *papers.Unit, quick *bool) { *quick = true },
		"mutant":     func(_ *Build, u *papers.Unit, _ *bool) { u.Variant = &papers.Variant{Name: "at random"} },
		"decision": func(_ *Build, u *papers.Unit, _ *bool) {
			u.Variant = &papers.Variant{Decision: &papers.Decision{Parameter: "window"}, Name: "at random"}
		},
		"parameter": func(_ *Build, u *papers.Unit, _ *bool) {
			u.Variant = &papers.Variant{Decision: &papers.Decision{Parameter: "buffer"}, Name: "at random"}
		},
		"another": func(_ *Build, u *papers.Unit, _ *bool) {
			u.Variant = &papers.Variant{Decision: &papers.Decision{Parameter: "window"}, Name: "64 KB"}
		},
		"value":    func(_ *Build, u *papers.Unit, _ *bool) { u.Setting[0].Value = "256 KB" },
		"reason":   func(_ *Build, u *papers.Unit, _ *bool) { u.Setting[0].Why = "no idea" },
		"inferred": func(_ *Build, u *papers.Unit, _ *bool) { u.Setting[1].Chosen = true },
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

// A pipe would be waited for, and a directory is no part.
func TestRead_refuses(t *testing.T) {
	d := fstest.MapFS{
		"pipe.json":  {Mode: fs.ModeNamedPipe, Data: []byte("{}")},
		"dir.json/x": {},
		"file.json":  {Data: []byte("{}")},
	}
	for name, want := range map[string]string{"pipe.json": "pipe.json is no regular file", "dir.json": "dir.json is no regular file", "no.json": "no.json", "file.json": ""} {
		b, err := Read(d, name)
		if want == "" && (err != nil || string(b) != "{}") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
