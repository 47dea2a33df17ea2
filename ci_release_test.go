package weft

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// released are the calls of slowtest.Release in the tests of a directory: by test, those that
// they name in their place. all are all tests there.
func released(t *testing.T, dir string) (calls map[string][]string, all map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	calls, all = make(map[string][]string), make(map[string]bool)
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			all[fn.Name.Name] = true
			ast.Inspect(fn, func(n ast.Node) bool {
				c, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				s, ok := c.Fun.(*ast.SelectorExpr)
				if !ok || s.Sel.Name != "Release" {
					return true
				}
				if x, ok := s.X.(*ast.Ident); !ok || x.Name != "slowtest" || len(c.Args) != 3 {
					return true
				}
				covered := ""
				if lit, ok := c.Args[1].(*ast.BasicLit); ok {
					covered, _ = strconv.Unquote(lit.Value)
				}
				calls[fn.Name.Name] = append(calls[fn.Name.Name], covered)
				return true
			})
		}
	}
	return calls, all
}

// What CI leaves to releases names a test that CI runs in its place.
func TestCI_whatIsLeftToReleasesIsCovered(t *testing.T) {
	for path := range packages(t) {
		dir := "." + strings.TrimPrefix(path, module)
		if dir == "./internal/slowtest" {
			continue // its own test
		}
		calls, tests := released(t, dir)
		for test, names := range calls {
			for _, name := range names {
				there, theirs := tests, calls
				if i := strings.LastIndex(name, "."); i >= 0 {
					theirs, there = released(t, name[:i])
					name = name[i+1:]
				}
				// A part of a test may be left out beside the rest of it.
				if !strings.HasPrefix(name, "Test") || !there[name] || name != test && theirs[name] != nil {
					t.Errorf("%s: %s is left to releases and names %q, which is no test that CI runs in full", dir, test, name)
				}
			}
		}
	}
}

func TestReleased_findsThem(t *testing.T) {
	calls, all := released(t, "internal/slowtest")
	if len(calls["TestLevels"]) != 1 || calls["TestLevels"][0] != "TestOther" || !all["TestLevels"] {
		t.Errorf("%v of %v", calls, all)
	}
}
