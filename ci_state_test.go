package weft

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// CI does not run packages without goroutines with the race detector. Goroutines of others
// may call them at the same time, so they keep nothing in package variables.
func TestCI_whatIsNotRacedKeepsNoStateOfThePackage(t *testing.T) {
	list, checked := raced(t), 0
	for path := range packages(t) {
		dir := "." + strings.TrimPrefix(path, module)
		if _, listed := list[path]; listed || unraced[path] != "" || concurrent(t, dir, false) {
			continue
		}
		checked++
		for _, where := range writtenVariables(t, dir) {
			t.Errorf("%s: a package variable is written: keep it in a value, or add the package to .ci/raced with a test that has goroutines", where)
		}
	}
	if checked < 15 {
		t.Errorf("only %d packages are looked at: the search is wrong", checked)
	}
}

// writtenVariables returns where functions of the package in dir, tests aside, assign to
// its package variables or to parts of them, or take their addresses. What a benchmark
// writes into sink, so that the compiler leaves nothing out, nobody reads.
func writtenVariables(t *testing.T, dir string) (where []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	variables := make(map[string]bool)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name.Name == "main" {
			return nil // nobody else calls it
		}
		files = append(files, f)
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
				for _, s := range g.Specs {
					for _, n := range s.(*ast.ValueSpec).Names {
						variables[n.Name] = true
					}
				}
			}
		}
	}
	for _, f := range files {
		// isPackages reports whether x is a package variable or a part of one.
		isPackages := func(x ast.Expr) bool {
			for {
				switch e := x.(type) {
				case *ast.SelectorExpr:
					x = e.X
				case *ast.IndexExpr:
					x = e.X
				case *ast.StarExpr:
					x = e.X
				case *ast.ParenExpr:
					x = e.X
				case *ast.Ident:
					// The parser resolves names within a file.
					return variables[e.Name] && e.Name != "sink" && (e.Obj == nil || e.Obj == f.Scope.Lookup(e.Name))
				default:
					return false
				}
			}
		}
		found := func(n ast.Node) { where = append(where, fset.Position(n.Pos()).String()) }
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.AssignStmt:
					for _, x := range n.Lhs {
						if n.Tok != token.DEFINE && isPackages(x) {
							found(n)
						}
					}
				case *ast.IncDecStmt:
					if isPackages(n.X) {
						found(n)
					}
				case *ast.UnaryExpr:
					if n.Op == token.AND && isPackages(n.X) {
						found(n)
					}
				}
				return true
			})
		}
	}
	return where
}

func TestWrittenVariables_findsThem(t *testing.T) {
	dir := t.TempDir()
	const source = `package p

var n, list, at, m, read = 0, []int{1}, struct{ x int }{}, map[int]int{}, 7

func f(n2 int) *int {
	n++
	list[0] = 1
	at.x = 2
	m[1] = 3
	_, n = 1, 2
	return &at.x
}

func g() int { n := read; n++; list := []int{n}; list[0] = 2; return list[0] }
`
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := writtenVariables(t, dir); len(got) != 6 {
		t.Errorf("%d, not 6: %q", len(got), got)
	}
}
