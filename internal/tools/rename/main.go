// Command rename gives the module another path, in every file of the tree:
//
//	go run ./internal/tools/rename example.org/team/weft
//
// It changes imports, the go.mod files, strings that name a package of the module, and
// links in comments. Nothing else depends on the path. Run it in the module's root, on
// a tree without changes, so that git can take it back.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: go run ./internal/tools/rename MODULE-PATH") }
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	n, err := rename(".", flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "rename:", err)
		os.Exit(1)
	}
	fmt.Printf("%d files changed; now run: gofmt -l . && go vet ./...\n", n)
}

var (
	modulePath = regexp.MustCompile(`(?m)^module[ \t]+(\S+)`)
	element    = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._~-]*$`)
)

// rename changes the tree below root and returns how many files it has written. The
// files are all read before the first is written.
func rename(root, to string) (changed int, err error) {
	for _, e := range strings.Split(to, "/") {
		if !element.MatchString(e) || strings.HasSuffix(e, ".") {
			return 0, fmt.Errorf("module path %q: %q cannot be a part of one; give something like example.org/team/weft", to, e)
		}
	}
	b, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return 0, fmt.Errorf("%w: run it in the module's root", err)
	}
	m := modulePath.FindSubmatch(b)
	if m == nil {
		return 0, errors.New("go.mod has no line module")
	}
	r := renamer{root: root, from: string(m[1]), to: to}
	files := make(map[string][]byte)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return err
		}
		var edit func(string, []byte) ([]byte, error)
		switch {
		case d.Name() == "go.mod":
			edit = r.mod
		case strings.HasSuffix(path, ".go"):
			edit = r.source
		default:
			return nil
		}
		was, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		is, err := edit(path, was)
		if err == nil && !bytes.Equal(was, is) {
			files[path] = is
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	for path, text := range files {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

type renamer struct{ root, from, to string }

// mod changes the lines of a go.mod that name the module or one below it.
func (r renamer) mod(_ string, b []byte) ([]byte, error) {
	line := regexp.MustCompile(`(?m)^((?:module|replace|require|)[ \t]+)` + regexp.QuoteMeta(r.from) + `(/\S*)?([ \t]|$)`)
	return line.ReplaceAll(b, []byte("${1}"+r.to+"${2}${3}")), nil
}

// source changes imports, strings and links of a Go file.
func (r renamer) source(path string, b []byte) ([]byte, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, b, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	type edit struct {
		at, end int
		text    string
	}
	var edits []edit
	add := func(n ast.Node, text string) {
		edits = append(edits, edit{set.Position(n.Pos()).Offset, set.Position(n.End()).Offset, text})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if s, err := strconv.Unquote(l.Value); err == nil && r.names(s) {
				add(l, strconv.Quote(r.to+strings.TrimPrefix(s, r.from)))
			}
		}
		return true
	})
	link := regexp.MustCompile(`\[` + regexp.QuoteMeta(r.from) + `/`)
	for _, g := range f.Comments {
		for _, c := range g.List {
			if text := link.ReplaceAllString(c.Text, "["+r.to+"/"); text != c.Text {
				add(c, text)
			}
		}
	}
	if len(edits) == 0 {
		return b, nil
	}
	slices.SortFunc(edits, func(a, b edit) int { return b.at - a.at })
	out := slices.Clone(b)
	for _, e := range edits {
		out = slices.Concat(out[:e.at], []byte(e.text), out[e.end:])
	}
	return format.Source(out)
}

// names reports whether a string names a package of the module, or a pattern of
// such. The bare path is none: it may be the program's name.
func (r renamer) names(s string) bool {
	dir, ok := strings.CutPrefix(s, r.from+"/")
	if !ok {
		return false
	}
	dir = strings.TrimSuffix(strings.TrimSuffix(dir, "..."), "/")
	info, err := os.Stat(filepath.Join(r.root, filepath.FromSlash(dir)))
	return err == nil && info.IsDir()
}
