package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTopology_specOrFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := "kind: vl2\nd0: 2\nd1: 4\nd2: 4\nlinks:\n- {link: e0.0-a0.0, down: true}\n"
	for _, c := range []struct{ spec, want, says string }{
		{"leaf-spine:leaves=2,spines=2,hosts=1", "leaf-spine:leaves=2,spines=2,hosts=1", ""},
		{write("a.yaml", good), "vl2:d0=2,d1=4,d2=4", ""},
		{write("b.yml", good), "vl2:d0=2,d1=4,d2=4", ""},
		{write("c.yaml", "kind: vl2\nd0: 2\nd1: 3\nd2: 4\n"), "", "c.yaml:3: "},
		{filepath.Join(dir, "none.yaml"), "", "there is no such file"},
		{dir + "/a.json", "", "unknown kind"},
		{write("large.yaml", strings.Repeat("#", maxTopology+1)), "", "longer than"},
	} {
		top, err := Topology(c.spec)
		switch {
		case c.says != "":
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, %v; want an error saying %q", c.spec, top, err, c.says)
			}
		case err != nil || top.String() != c.want:
			t.Errorf("%s: %v, %v; want %s", c.spec, top, err, c.want)
		case strings.Contains(c.spec, dir) && len(top.Down()) != 1:
			t.Errorf("%s: down %v", c.spec, top.Down())
		}
	}
}
