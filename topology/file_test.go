package topology

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseFile_isTheSpecAtLength(t *testing.T) {
	for _, c := range []struct{ text, spec, down string }{
		{"kind: fat-tree\nk: 4\n", "fat-tree:k=4", ""},
		{"k: 4\nhosts: 4\nkind: fat-tree\n", "fat-tree:k=4,hosts=4", ""},
		{"{kind: leaf-spine, leaves: 4, spines: 3, hosts: 2}", "leaf-spine:leaves=4,spines=3,hosts=2", ""},
		{"kind: vl2\nd0: 2\nd1: 4\nd2: 4\nhosts: 2\nlinks: []\n", "vl2:d0=2,d1=4,d2=4,hosts=2", ""},
		{`# The lab.
kind: fat-tree
k: 4
host-rate: 100
fabric-rate: 100.5
core-rate: 1e3
links:
  - {link: a0.2-e0.0, rate: 40}
  - link: 3.1-a0.2
    down: true
  - {link: h0.0.2-e0.0, rate: 10, down: false}
  - {link: a3.3-3.3, rate: 5, down: true}
  - {link: a3.3-3.2, rate: 1000}
`, "fat-tree:k=4,host-rate=100,fabric-rate=100.5,core-rate=1000,h0.0.2-e0.0=10,e0.0-a0.2=40,a3.3-c2.2=5", "a0.2-c1.2 a3.3-c2.2"},
	} {
		top, err := ParseFile([]byte(c.text))
		if err != nil || top.String() != c.spec {
			t.Errorf("%q: %v, %v; want %s", c.text, top, err, c.spec)
			continue
		}
		var down []string
		for _, l := range top.Down() {
			down = append(down, top.LinkName(l))
		}
		if got := strings.Join(down, " "); got != c.down {
			t.Errorf("%q: %s are down, want %s", c.text, got, c.down)
		}
		if again, err := Parse(top.String()); err != nil || !reflect.DeepEqual(again, top.Whole()) {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", top, again, err, top.Whole())
		}
	}
}

func TestParseFile_errors(t *testing.T) {
	for text, says := range map[string][]string{
		"":                              {"empty", "kind: fat-tree"},
		"# nothing\n":                   {"empty"},
		"fat-tree:k=4":                  {"line 1", "kind: fat-tree"},
		"k: 4":                          {"kind is missing", "fat-tree:k=K"},
		"kind: ring\nk: 4":              {"line 1", `"ring"`, "leaf-spine:"},
		"kind: fat-tree":                {"k is missing"},
		"kind: fat-tree\nk: 3":          {"line 2", "k=3", "even"},
		"kind: fat-tree\nk: four":       {"line 2", "k=four", "whole number"},
		"kind: fat-tree\nk:":            {"line 2", "k has no value"},
		"kind: fat-tree\nk: [4]":        {"line 2", `"k"`, "one value"},
		"kind: fat-tree\nk: 4\nk: 4":    {"line 3", "k given twice"},
		"kind: fat-tree\nkind: vl2":     {"line 2", "kind given twice"},
		"kind: fat-tree\nk: 4\nspin: 4": {"line 3", `"spin"`, "k, hosts"},
		"kind: fat-tree\nk: 4\nhost-rate: 1\ncore_rate: 1":                         {"line 4", `"core_rate"`, "core-rate"},
		"kind: fat-tree\nk: 4\nhost-rate: fast":                                    {"line 3", "host-rate=fast", "Mbit/s"},
		"kind: fat-tree\nk: 4\nhost-rate: 0":                                       {"line 3", "host-rate=0", "0.001"},
		"kind: fat-tree\nk: 4\nhost-rate: .nan":                                    {"line 3", "Mbit/s"},
		"kind: fat-tree\nk: 4\nhosts: 200":                                         {"line 3", "hosts=200", "125"},
		"kind: vl2\nd0: 2\nd1: 3\nd2: 4":                                           {"line 3", "d1=3", "even"},
		"kind: fat-tree\nk: 4\nlinks: e0.0-a0.2":                                   {"line 3", "list"},
		"kind: fat-tree\nk: 4\nlinks: []\nlinks: []":                               {"line 4", "links given twice"},
		"kind: fat-tree\nk: 4\nlinks: [e0.0-a0.2]":                                 {"line 3", "{link: e0.0-a0.2, rate: 40}"},
		"kind: fat-tree\nk: 4\nlinks:\n- {rate: 4}":                                {"line 4", "link is missing"},
		"kind: fat-tree\nk: 4\nlinks:\n- {link: e0.0, down: true}":                 {"line 4", `"e0.0"`, "hyphen"},
		"kind: fat-tree\nk: 4\nlinks:\n- {link: host-rate, rate: 4}":               {"line 4", `"host-rate"`, "hyphen"},
		"kind: fat-tree\nk: 4\nlinks:\n- {link: e0.0-a1.2, down: true}":            {"line 4", "not wired"},
		"kind: fat-tree\nk: 4\nlinks:\n- {link: e0.0-a0.2, down: maybe}":           {"line 4", `"maybe"`, "true or false"},
		"kind: fat-tree\nk: 4\nlinks:\n- {link: e0.0-a0.2, dead: true}":            {"line 4", `"dead"`, "link, rate, down"},
		"kind: fat-tree\nk: 4\nlinks:\n- {link: e0.0-a0.2, down: [true]}":          {"line 4", `"down"`, "one value"},
		"kind: fat-tree\nk: 4\nlinks:\n- {link: e0.0-a0.2, rate: 4}":               {"line 4", "e0.0-a0.2", "fabric-rate is missing"},
		"kind: fat-tree\nk: 4\nlinks:\n- {link: e0.0-a0.2, link: e0.0-a0.3}":       {"line 4", "link given twice"},
		"kind: fat-tree\nk: 4\nfabric-rate: 9\nlinks:\n- {link: e0.0-x, rate: 4}":  {"line 5", `"x"`, "not in fat-tree:k=4"},
		"kind: leaf-spine\nleaves: 2\nspines: 2\nhosts: 2\ncore-rate: 4":           {"core-rate", "fabric-rate"},
		"kind: fat-tree\nk: &x 4\nhosts: *x":                                       {"line 3", `"hosts"`, "one value"},
		"kind: fat-tree\nk: 4\n---\nk: 4":                                          {"line", "second document"},
		"kind: fat-tree\n  k: 4":                                                   {"line"},
		"kind: fat-tree\nk: 4\nfabric-rate: 9\ne0.0-a0.2: 4\na0.2-e0.0: 5":         {"line 5", "e0.0-a0.2", "twice"},
		"kind: fat-tree\nk: 4\nfabric-rate: 9\nlinks:\n- {rate: 4, link: a0.2-3.}": {"line 5", `"3."`},
	} {
		top, err := ParseFile([]byte(text))
		if err == nil {
			t.Errorf("%q: %v", text, top)
			continue
		}
		for _, s := range append(says, "topology file: ") {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%q: %v; does not say %q", text, err, s)
			}
		}
	}
}

func FuzzParseFile(f *testing.F) {
	for _, s := range []string{
		"kind: fat-tree\nk: 4\n",
		"kind: vl2\nd0: 2\nd1: 4\nd2: 4\nfabric-rate: 9\nlinks:\n- {link: e0.0-a0.0, rate: 4, down: true}\n",
		"{kind: leaf-spine, leaves: 4, spines: 3, hosts: 2, e0.0-a0.0: 3, fabric-rate: 2}",
		"a: &a [*a]", "<<: {k: 4}", "? {a: b}\n: c", "---\n---\n", "%YAML 1.2\n", "kind: fat-tree\nlinks: [{link: [x]}]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		top, err := ParseFile(text)
		if (top == nil) == (err == nil) {
			t.Fatalf("%v, %v", top, err)
		}
		if err != nil {
			return
		}
		if again, err := Parse(top.String()); err != nil || !reflect.DeepEqual(again, top.Whole()) {
			t.Fatalf("%q is %v, which Parse reads as %v, %v", text, top, again, err)
		}
	})
}
