package weft

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Of packages that build labs CI runs without the race detector only those tests that it
// changes. .ci/unraced finds them, and no other function may decide for a test.
func TestCI_runsApartWhatTheRaceDetectorChanges(t *testing.T) {
	found := 0
	for path, kind := range raced(t) {
		if kind != "labs" {
			continue
		}
		dir := "." + strings.TrimPrefix(path, module)
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no tests, %v", dir, err)
		}
		var want []string
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || !changedByRace(fn) {
					continue
				}
				if test := fn.Name.Name; fn.Recv == nil && (strings.HasPrefix(test, "Test") || strings.HasPrefix(test, "Fuzz")) {
					want = append(want, test)
				} else if !strings.HasPrefix(test, "Benchmark") {
					t.Errorf("%s: %s is no test: let each test that calls it ask for -short or the race detector itself", name, test)
				}
			}
		}
		found += len(want)
		out, err := exec.Command("bash", ".ci/unraced", dir).Output()
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		pattern := strings.Join(want, "|")
		if pattern != "" {
			pattern = "^(" + pattern + ")$"
		}
		if got := strings.TrimSpace(string(out)); got != pattern {
			t.Errorf("%s: .ci/unraced finds %q, want %q", dir, got, pattern)
		}
	}
	if found < 10 {
		t.Errorf("only %d tests: the search is wrong", found)
	}
}

// changedByRace reports whether a function does something else with the race detector, or
// with -short, which goes with it.
func changedByRace(fn *ast.FuncDecl) bool {
	calls := callsIn(fn)
	found := calls["slowtest.Unraced"] || calls["slowtest.Small"] || calls["testing.Short"] || calls["testing.AllocsPerRun"]
	ast.Inspect(fn, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			found = found || id.Name == "race" || id.Name == "raced"
		}
		return true
	})
	return found
}
