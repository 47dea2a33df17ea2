package weft

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// unraced are packages with goroutines that CI does not run with the race detector,
// and why.
var unraced = map[string]string{
	"weft/third_party/netstack/tcp":         "gVisor's, without its tests; stack's and the simulator's race through it",
	"weft/internal/kernel/kerneltest":       "helps tests: the packages whose tests import it race with it",
	"weft/internal/dataplane/dataplanetest": "helps tests: those of dataplane and stack race with it",
	"weft/internal/etcdclient/etcdtest":     "helps tests: those of mesh/etcd race with it",
	"weft/internal/clock":                   "one call of package time; those who use it race with it",
	"weft/examples/httpserver":              "a program of one page without tests; examples runs it as a process",
}

// concurrent reports whether a package starts goroutines or shares memory between
// some: a go statement, sync, sync/atomic or time.AfterFunc. Of its tests it asks the same
// if tests is true, of the rest of it if not.
func concurrent(t *testing.T, dir string, tests bool) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") != tests {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			found = found || path == "sync" || path == "sync/atomic"
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				found = true
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				found = found || ok && x.Name == "time" && n.Sel.Name == "AfterFunc"
			}
			return true
		})
	}
	return found
}

// raced is what CI runs with the race detector, and the kinds, see .ci/raced.
func raced(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile(".ci/raced")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			kind := strings.Join(fields[1:], " ")
			if !slices.Contains([]string{"", "labs", "user", "measures"}, kind) {
				t.Errorf(".ci/raced: %q: not labs, user or measures, so nothing runs it", line)
			}
			all[module+strings.TrimPrefix(fields[0], ".")] = kind
		}
	}
	return all
}

func TestCI_racesEveryPackageWithGoroutines(t *testing.T) {
	list, all := raced(t), packages(t)
	checked := 0
	for path := range all {
		dir := "." + strings.TrimPrefix(path, module)
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); dir != "." && err == nil {
			continue // a module of its own
		}
		if !concurrent(t, dir, false) {
			continue
		}
		checked++
		if _, listed := list[path]; !listed && unraced[path] == "" {
			t.Errorf("%s has goroutines or locks, but is not in .ci/raced: add ./%s", path, strings.TrimPrefix(path, "weft/"))
		}
	}
	for path, kind := range list {
		if _, ok := all[path]; !ok {
			t.Errorf(".ci/raced has %s, which is no package", path)
		}
		if dir := "." + strings.TrimPrefix(path, module); kind == "" && !concurrent(t, dir, false) && !concurrent(t, dir, true) {
			t.Errorf(".ci/raced has %s, where nothing runs beside anything: the race detector finds nothing", path)
		}
	}
	if checked < 15 {
		t.Errorf("only %d packages have goroutines: the search is wrong", checked)
	}
	run, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{".ci/raced", "$(listed)", "$(listed labs)", "$(listed user)", "$(listed measures)", "WEFT_TESTS=all go test -p 2 -race -short", "WEFT_TESTS=unraced", "./internal/tools/spoiled", "WEFT_TESTS=all .ci/again"} {
		if !strings.Contains(string(run), part) {
			t.Errorf(".ci/run has no %s", part)
		}
	}
}

// Two runs of a package's tests may be under way: a lab of a fixed name would be in use.
func TestCI_labsOfTestsHaveNamesOfTheirOwn(t *testing.T) {
	fixed := regexp.MustCompile(`lab\.Config\{\s*Name: +"|"--name", "`)
	for path := range packages(t) {
		files, _ := filepath.Glob(filepath.Join("."+strings.TrimPrefix(path, module), "*_linux_test.go"))
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if m := fixed.Find(b); m != nil {
				t.Errorf("%s: %s: take kerneltest.LabName", name, m)
			}
		}
	}
}

// CI runs slow tests of packages in .ci/raced with -short only. One that -short leaves out
// nobody would run: it is for slowtest.Unraced.
func TestCI_runsEverySlowTest(t *testing.T) {
	list := raced(t)
	slow := 0
	for path := range packages(t) {
		for name, fn := range testFunctions(t, "."+strings.TrimPrefix(path, module)) {
			calls := callsIn(fn)
			if !calls["slowtest.System"] && !calls["slowtest.Unraced"] {
				continue
			}
			slow++
			if _, listed := list[path]; listed && calls["slowtest.System"] && calls["testing.Short"] {
				t.Errorf("%s: %s asks for -short: call slowtest.Unraced if it leaves itself out", name, fn.Name.Name)
			}
		}
	}
	if slow < 20 {
		t.Errorf("only %d slow tests: the search is wrong", slow)
	}
}

// testFunctions are the functions of a directory's test files, each with the name of its file.
func testFunctions(t *testing.T, dir string) iter.Seq2[string, *ast.FuncDecl] {
	return func(yield func(string, *ast.FuncDecl) bool) {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && !yield(name, fn) {
					return
				}
			}
		}
	}
}

// callsIn returns the functions of packages that fn calls: "package.Function".
func callsIn(fn *ast.FuncDecl) map[string]bool {
	calls := make(map[string]bool)
	ast.Inspect(fn, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if s, ok := c.Fun.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok {
					calls[x.Name+"."+s.Sel.Name] = true
				}
			}
		}
		return true
	})
	return calls
}

// failedLog is what go test says of a test that failed in a package.
const failedLog = `ok  	weft/drb	0.011s
--- FAIL: TestLater (1.20s)
    later_test.go:7: said "why", by	tab and back\slash
    later_test.go:9: and more
FAIL
FAIL	weft/some/where	2.345s
ok  	weft/gso	0.020s
FAIL
`

// fakeGo stands for the go command: what it builds notes each run in a file, and
// fails in the run that FAIL_AT names, if any.
const fakeGo = `#!/bin/sh
echo "go $*" >>"$NOTES"
case $1 in
test)
	while [ "$1" != -o ]; do shift; done
	cat >"$2" <<'END'
#!/bin/sh
echo "run $*" >>"$NOTES"
kill -0 "$(cat "$NOTES.load")" && echo loaded >>"$NOTES"
if [ "$(grep -c ^run "$NOTES")" = "$FAIL_AT" ]; then echo "--- FAIL: TestLater"; exit 1; fi
END
	chmod +x "$2" ;;
list) echo "$PWD" ;;
esac
`

// fakeLoad runs until it is killed, with a child.
const fakeLoad = `#!/bin/sh
echo $$ >"$NOTES.load"
sleep 1000 &
echo $! >"$NOTES.child"
wait
`

// again runs .ci/again for a log, with a ledger, and returns what it says, what was
// noted, and whether it passed.
func again(t *testing.T, log, ledger, failAt string, flags ...string) (out, notes string, ok bool) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("go", fakeGo)
	noted := write("notes", "")
	write("notes.load", "0\n")
	cmd := exec.Command("bash", append([]string{".ci/again", write("log", log)}, flags...)...)
	cmd.Env = append(cmd.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "NOTES="+noted, "FAIL_AT="+failAt,
		"LEDGER="+write("ledger", ledger), "LOAD="+write("load", fakeLoad), "TIMES=7", "GOFLAGS=")
	b, err := cmd.CombinedOutput()
	n, err2 := os.ReadFile(noted)
	if err2 != nil {
		t.Fatal(err2)
	}
	if child, err := os.ReadFile(noted + ".child"); err == nil {
		stat := filepath.Join("/proc", strings.TrimSpace(string(child)), "stat")
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // the signal has been sent
			s, err := os.ReadFile(stat)
			if err != nil || strings.Contains(string(s), ") Z ") {
				break
			}
			if time.Now().After(end) {
				t.Errorf("a part of the load runs still: %s", s)
				break
			}
		}
	} else if _, is := err.(*fs.PathError); !is {
		t.Fatal(err)
	}
	return string(b), string(n), err == nil
}

func TestAgain_repeatsUnderLoadAndPrintsTheLedgersLine(t *testing.T) {
	out, notes, ok := again(t, failedLog, "", "", "-race", "-short")
	if !ok || strings.Count(notes, "run -test.timeout=10m -test.run ^(TestLater)$ -test.short\n") != 7 || strings.Count(notes, "loaded") < 6 {
		t.Fatalf("passed %v:\n%s%s", ok, out, notes)
	}
	if !strings.Contains(notes, "go test -race -c -o ") {
		t.Errorf("built without the race detector: %s", notes)
	}
	var entry struct{ Date, Package, Test, Output, Cause string }
	line := out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]
	if err := json.Unmarshal([]byte(line), &entry); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	want := "--- FAIL: TestLater (1.20s)\n    later_test.go:7: said \"why\", by\ttab and back\\slash\n    later_test.go:9: and more"
	if entry.Package != "weft/some/where" || entry.Test != "TestLater" || entry.Output != want || len(entry.Date) != 10 {
		t.Errorf("%+v", entry)
	}
	// With that line in the ledger it is no flake any more.
	if out, notes, ok := again(t, failedLog, line, ""); ok || strings.Contains(notes, "run") || !strings.Contains(out, "stands in the ledger already") {
		t.Errorf("the second time: passed %v:\n%s%s", ok, out, notes)
	}
}

// What has failed as an ordinary user may pass as root.
func TestAgain_repeatsAsTheSameUser(t *testing.T) {
	by := filepath.Join(t.TempDir(), "by")
	if err := os.WriteFile(by, []byte("#!/bin/sh\necho by >>\"$NOTES\"\nexec \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, notes, ok := again(t, failedLog, "", "", "-race", "-short", "-exec", by)
	if !ok || strings.Count(notes, "by\nrun -test.timeout=10m -test.run ^(TestLater)$ -test.short\n") != 7 || !strings.Contains(notes, "go test -race -c -o ") {
		t.Fatalf("passed %v:\n%s%s", ok, out, notes)
	}
}

func TestAgain_failsIfAnyRepetitionFails(t *testing.T) {
	for _, at := range []string{"1", "7"} {
		if out, notes, ok := again(t, failedLog, "", at); ok || !strings.Contains(out, "failed again, repetition "+at) {
			t.Errorf("fails at %s, passed %v:\n%s%s", at, ok, out, notes)
		}
	}
}

func TestAgain_leavesWhatIsNoAccident(t *testing.T) {
	one := "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tweft/a\t0.01s\n"
	for name, log := range map[string]string{
		"race":  "WARNING: DATA RACE\n" + failedLog,
		"panic": "panic: runtime error\n" + failedLog,
		"build": "FAIL\tweft/a [build failed]\n" + failedLog,
		"many":  failedLog + one + one + one,
		"none":  "ok  \tweft/a\t0.01s\n",
	} {
		if out, notes, ok := again(t, log, "", ""); ok || strings.Contains(notes, "run") {
			t.Errorf("%s: passed %v:\n%s%s", name, ok, out, notes)
		}
	}
}

// Each line of the ledger is one flake, and no test is in it twice.
func TestLedger_isWellFormed(t *testing.T) {
	b, err := os.ReadFile(".ci/flakes.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(string(b)) {
		var e struct{ Date, Package, Test, Output, Cause, Mended string }
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil || e.Date == "" || e.Output == "" || !strings.HasPrefix(line, `{"date":"`+e.Date+`","package":"`+e.Package+`","test":"`+e.Test+`",`) {
			t.Errorf("%v: %s", err, line)
		}
		if seen[e.Package+e.Test] {
			t.Errorf("twice: %s %s", e.Package, e.Test)
		}
		seen[e.Package+e.Test] = true
	}
}
