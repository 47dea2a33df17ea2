package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var writeDefinitions = flag.Bool("definitions", false, "write simdefined.go, where experiments are defined")

// simdefined.go says of every experiment in which file its name is written.
func TestDefinitions(t *testing.T) {
	files, err := filepath.Glob("../../bench/papers/*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	in := make(map[string][]string) // by what is written
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || filepath.Base(filepath.Dir(file)) == "results" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.ToSlash(strings.TrimPrefix(file, "../../"))
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil && !slices.Contains(in[s], path) {
					in[s] = append(in[s], path)
				}
			}
			return true
		})
	}
	want := make(map[string]string)
	var text bytes.Buffer
	text.WriteString("// Written by go test ./cmd/weft -run TestDefinitions -definitions\n\npackage main\n\n" +
		"// definedIn is the file that defines an experiment, by its name.\nvar definedIn = map[string]string{\n")
	all := experiments()
	for _, e := range all {
		if len(in[e.Name]) != 1 {
			t.Errorf("%s is written in %v, and must be in one file, which defines it", e.Name, in[e.Name])
			continue
		}
		want[e.Name] = in[e.Name][0]
		fmt.Fprintf(&text, "%q: %q,\n", e.Name, want[e.Name])
	}
	text.WriteString("}\n")
	if *writeDefinitions {
		b, err := format.Source(text.Bytes())
		if err == nil {
			err = os.WriteFile("simdefined.go", b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	for name, file := range want {
		if definedIn[name] != file {
			t.Errorf("%s is defined in %s, and simdefined.go says %q: run go test ./cmd/weft -run TestDefinitions -definitions", name, file, definedIn[name])
		}
	}
	if len(definedIn) != len(all) {
		t.Errorf("simdefined.go has %d experiments, and there are %d: run go test ./cmd/weft -run TestDefinitions -definitions", len(definedIn), len(all))
	}
}
