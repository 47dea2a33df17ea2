package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree writes files below a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestRename(t *testing.T) {
	root := tree(t, map[string]string{
		"go.mod":         "module old\n\ngo 1.26\n",
		"sub/go.mod":     "module old/sub\n\nrequire (\n\told v0.0.0\n\tolder v1.0.0\n)\n\nreplace old => ..\n",
		"a/a.go":         "// Package a is like [old/b].\npackage a\n\nimport (\n\t\"older/b\"\n\n\t\"old/b\"\n)\n\nvar _ = b.B\n\nvar names = []string{\"old\", \"old/b\", \"old/b/...\", \"old/missing\", \"older/b\"}\n",
		"b/b.go":         "package b\n\nconst B = 1\n",
		".hidden/x.go":   "package x\n\nimport \"old/b\"\n",
		"docs/guide.txt": "old/b\n",
	})
	n, err := rename(root, "example.org/team/new")
	if err != nil || n != 3 {
		t.Fatal(n, err)
	}
	for name, want := range map[string]string{
		"go.mod":       "module example.org/team/new\n\ngo 1.26\n",
		"sub/go.mod":   "module example.org/team/new/sub\n\nrequire (\n\texample.org/team/new v0.0.0\n\tolder v1.0.0\n)\n\nreplace example.org/team/new => ..\n",
		"a/a.go":       "// Package a is like [example.org/team/new/b].\npackage a\n\nimport (\n\t\"older/b\"\n\n\t\"example.org/team/new/b\"\n)\n\nvar _ = b.B\n\nvar names = []string{\"old\", \"example.org/team/new/b\", \"example.org/team/new/b/...\", \"old/missing\", \"older/b\"}\n",
		".hidden/x.go": "package x\n\nimport \"old/b\"\n",
	} {
		if b, _ := os.ReadFile(filepath.Join(root, name)); string(b) != want {
			t.Errorf("%s is\n%swant\n%s", name, b, want)
		}
	}
}

func TestRename_refuses(t *testing.T) {
	for _, to := range []string{"", "/x", "x/", "a b", "a//b", "../x"} {
		root := tree(t, map[string]string{"go.mod": "module old\n"})
		if _, err := rename(root, to); err == nil || !strings.Contains(err.Error(), "module path") {
			t.Errorf("%q: %v", to, err)
		}
	}
	if _, err := rename(t.TempDir(), "x"); err == nil || !strings.Contains(err.Error(), "root") {
		t.Error(err)
	}
	// What does not parse changes nothing.
	root := tree(t, map[string]string{"go.mod": "module old\n", "a.go": "package\n"})
	if _, err := rename(root, "x"); err == nil {
		t.Error("no error")
	}
	if b, _ := os.ReadFile(filepath.Join(root, "go.mod")); string(b) != "module old\n" {
		t.Error("go.mod was changed")
	}
}
