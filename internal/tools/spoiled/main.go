// Command spoiled says which tests of some directories must also run without the race
// detector, besides go test ./..., which leaves slow ones out. They are those which the race
// detector would spoil (slowtest.Unraced), those that do little in both (slowtest.Small), and
// slow ones of which -short leaves something out (slowtest.System and testing.Short), by
// themselves or in a function that they call. With -slow, for directories that the race
// detector does not run, they are all slow ones. It prints arguments of go test: -run ^(A|B)$
// and the directories that have some. .ci/run uses it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	slow := flag.Bool("slow", false, "slow tests that the race detector could run, too")
	flag.Parse()
	sets := asks
	if *slow {
		sets = append(sets, []string{"slowtest.System"})
	}
	tests, dirs, err := find(sets, flag.Args())
	if err == nil && len(tests) == 0 {
		err = errors.New("no test asks for slowtest.Unraced or slowtest.Small: go test -run would run nothing")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "spoiled:", err)
		os.Exit(1)
	}
	fmt.Printf("-run ^(%s)$ %s\n", strings.Join(tests, "|"), strings.Join(dirs, " "))
}

// asks are sets of functions that tell a test to do less. One that calls all of a set does it.
var asks = [][]string{{"slowtest.Unraced"}, {"slowtest.Small"}, {"slowtest.System", "testing.Short"}}

// find returns the names of the tests that call all of one of sets, sorted, each once, and the
// directories that have some.
func find(sets [][]string, dirs []string) (tests, have []string, err error) {
	for _, dir := range dirs {
		calls, err := callsIn(dir)
		if err != nil {
			return nil, nil, err
		}
		before := len(tests)
		for name := range calls {
			if strings.HasPrefix(name, "Test") && asked(sets, calls, name) {
				tests = append(tests, name)
			}
		}
		if len(tests) > before {
			have = append(have, dir)
		}
	}
	slices.Sort(tests)
	return slices.Compact(tests), have, nil
}

// asked reports whether a test calls all of one of sets.
func asked(sets [][]string, calls map[string][]string, name string) bool {
	return slices.ContainsFunc(sets, func(set []string) bool {
		return !slices.ContainsFunc(set, func(what string) bool { return !reaches(calls, name, what, make(map[string]bool)) })
	})
}

// reaches reports whether a function calls what, or another function that does.
func reaches(calls map[string][]string, name, what string, seen map[string]bool) bool {
	seen[name] = true
	return slices.ContainsFunc(calls[name], func(callee string) bool {
		return callee == what || !seen[callee] && reaches(calls, callee, what, seen)
	})
}

// callsIn returns what each function of the tests in a directory calls: f, or package.F.
// Methods of one name count as one.
func callsIn(dir string) (map[string][]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	calls := make(map[string][]string)
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				switch n := n.(type) { // a name that is passed may be called, too
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok {
						calls[fn.Name.Name] = append(calls[fn.Name.Name], x.Name+"."+n.Sel.Name)
					}
					calls[fn.Name.Name] = append(calls[fn.Name.Name], n.Sel.Name)
				case *ast.Ident:
					calls[fn.Name.Name] = append(calls[fn.Name.Name], n.Name)
				}
				return true
			})
		}
	}
	return calls, nil
}
