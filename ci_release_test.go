package weft

import (
	"go/ast"
	"strconv"
	"strings"
	"testing"
)

// releases is what the tests of a directory leave to releases.
type releases struct {
	calls map[string][]string // by test: what its calls of slowtest.Release name in its place
	runs  map[string]bool     // by test: whether CI runs it, or a part of it at least
}

func released(t *testing.T, dir string) releases {
	t.Helper()
	r := releases{make(map[string][]string), make(map[string]bool)}
	for _, fn := range testFunctions(t, dir) {
		test := fn.Name.Name
		r.runs[test] = true
		for _, s := range fn.Body.List {
			if e, ok := s.(*ast.ExprStmt); ok {
				if _, is := release(e.X); is {
					r.runs[test] = false
				}
			}
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			if covered, is := release(n); is {
				r.calls[test] = append(r.calls[test], covered)
			}
			return true
		})
	}
	return r
}

// release reports whether a node is a call of slowtest.Release, and what it names.
func release(n ast.Node) (covered string, is bool) {
	c, ok := n.(*ast.CallExpr)
	if !ok || len(c.Args) != 3 {
		return "", false
	}
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Release" {
		return "", false
	}
	if x, ok := s.X.(*ast.Ident); !ok || x.Name != "slowtest" {
		return "", false
	}
	if lit, ok := c.Args[1].(*ast.BasicLit); ok {
		covered, _ = strconv.Unquote(lit.Value)
	}
	return covered, true
}

// What CI leaves to releases names a test that CI runs in its place.
func TestCI_whatIsLeftToReleasesIsCovered(t *testing.T) {
	for path := range packages(t) {
		dir := "." + strings.TrimPrefix(path, module)
		here := released(t, dir)
		for test, names := range here.calls {
			for _, name := range names {
				there := here
				if i := strings.LastIndex(name, "."); i >= 0 {
					there, name = released(t, name[:i]), name[i+1:]
				}
				if !strings.HasPrefix(name, "Test") || !there.runs[name] {
					t.Errorf("%s: %s is left to releases and names %q, which is no test that CI runs", dir, test, name)
				}
			}
		}
	}
}

func TestReleased_findsThem(t *testing.T) {
	r := released(t, "cmd/weft")
	if got := r.calls["TestHost_sendsBySIDs"]; len(got) != 1 || got[0] != "TestHost_learnsSIDsFromFRR" || !r.runs["TestHost_sendsBySIDs"] {
		t.Errorf("of cmd/weft: %+v", r)
	}
	if r = released(t, "internal/interop"); r.runs["TestFailures_underwayBySRv6"] || !r.runs["TestFailures_underway"] {
		t.Errorf("of internal/interop: %+v", r)
	}
}
