package weft

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeCIGo stands for the go command in .ci/run: it notes what it is asked, and fails
// with some output where FAIL is a part of that.
const fakeCIGo = `#!/bin/sh
line="WEFT_TESTS=$WEFT_TESTS go $*"
echo "$line" >>"$NOTES"
case $line in *"$FAIL"*) printf '%b\n' "$SAYS"; exit 1 ;; esac
case "$*" in
"list -f"*) for p in weft weft/drb weft/stack weft/sole; do echo "$p os weft/internal/slowtest"; done; echo weft/quick os ;;
"list ." | "list -m") echo weft ;;
"list -deps -test ./...") ;;
"list ./...") printf 'weft\nweft/drb\nweft/stack\nweft/sole\nweft/quick\n' ;;
"run ./internal/tools/spoiled -slow "*) shift 3; echo "-run ^(TestC)$ $*" ;;
"run ./internal/tools/spoiled "*) echo '-run ^(TestA|TestB)$ ./internal/daemon ./lab' ;;
"list "*) printf 'weft/drb\nweft/stack\n' ;;
esac
`

// runCI runs .ci/run with nothing real behind it. fail is a part of the call of go that
// fails, and says what that prints.
func runCI(t *testing.T, fail, says string) (out, notes string, ok bool) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go": fakeCIGo, "dpkg": "#!/bin/sh\n", "ls": "#!/bin/sh\n", "gofmt": "#!/bin/sh\n", "notes": "",
		"git": "#!/bin/sh\nfor a; do case $a in --prefix=*) mkdir -p \"${a#--prefix=}examples/grpc\" ;; esac; done\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("bash", ".ci/run")
	cmd.Env = append(cmd.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "NOTES="+filepath.Join(dir, "notes"), "FAIL="+fail, "SAYS="+says, "WEFT_TESTS=")
	b, err := cmd.CombinedOutput()
	n, err2 := os.ReadFile(filepath.Join(dir, "notes"))
	if err2 != nil {
		t.Fatal(err2)
	}
	return string(b), string(n), err == nil
}

func TestCI_runsEachPackageAtItsLevel(t *testing.T) {
	out, notes, ok := runCI(t, "nothing fails", "")
	if !ok || !strings.Contains(out, "all passed") {
		t.Fatalf("passed %v:\n%s", ok, out)
	}
	for _, want := range []string{
		"WEFT_TESTS=all go test .\n",
		"WEFT_TESTS=all go test -p 1 -run ^(TestC)$ ./sole\n", // what .ci/raced does not list
		"WEFT_TESTS= go test ./...\n",                         // the README's
		"WEFT_TESTS=unraced go test -p 1 -run ^(TestA|TestB)$ ./internal/daemon ./lab\n",
		"WEFT_TESTS=all go test -p 2 -race -short ./cmd/weft ./internal/daemon ./lab ",
		"WEFT_TESTS=all go test -p 2 -race -short ./internal/kernel/internal/seam ",
		"WEFT_TESTS=all go test -p 2 -race -short",
		"WEFT_TESTS= go test -p 1 -race -short ./bench/asymmetry",
		"run ./internal/tools/rename",
		"WEFT_TESTS= go list -deps -test ./...\n",
		"WEFT_TESTS= go vet ./...\n", // for another system
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("CI does not run %q:\n%s", want, notes)
		}
	}
	for _, once := range []string{")$ ./sole", "test .\n"} {
		if strings.Count(notes, once) != 1 {
			t.Errorf("%q runs %d times:\n%s", once, strings.Count(notes, once), notes)
		}
	}
}

func TestCI_failsWhereAPartFails(t *testing.T) {
	const tests = "--- FAIL: TestRate (1.00s)\\nFAIL\\nFAIL\\tweft/bench/asymmetry\\t1.0s"
	for _, c := range []struct {
		fail, says, name string
		ok               bool
	}{
		{"all go test .", "no", "", false}, // the tree: nothing else runs
		{"all go test -p 1 -run ^(TestC)$ ./sole", "panic: no", "whole", false},
		{"WEFT_TESTS= go test ./...", "panic: no", "plain", false},
		{"unraced go test -p 1 -run", "panic: no", "unraced", false},
		{"list -f", "no", "whole", false}, // else it would run nothing
		{"tools/spoiled", "no", "unraced", false},
		{"tools/spoiled -slow", "no", "whole", false},
		{"-race -short ./cmd/weft", "WARNING: DATA RACE", "labs", false},
		{"-race -short ./internal/kernel/internal/seam", "WARNING: DATA RACE", "raced", false},
		{"rename", "no", "renamed", false},
		{"list -deps -test", "no", "renamed", false},
		{"go vet ./...", "no", "elsewhere", false},
		{"-race -short ./bench/asymmetry", "WARNING: DATA RACE", "measures", false},
		{"-race -short ./bench/asymmetry", tests, "", true}, // it asserts a rate
	} {
		t.Run(c.fail, func(t *testing.T) {
			t.Parallel() // most of it is waiting for processes
			out, _, ok := runCI(t, c.fail, c.says)
			if ok != c.ok || c.name != "" && !strings.Contains(out, c.name) {
				t.Errorf("it says %q: CI passed %v:\n%s", c.says, ok, out)
			}
		})
	}
}
