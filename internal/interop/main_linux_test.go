package interop

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"weft/lab"
)

// role makes the test program another one, when it is run inside a host.
const role = "WEFT_TEST_ROLE"

var roles = map[string]func(args []string) error{
	"answer": answer,
	"load":   load,
}

func TestMain(m *testing.M) {
	if f, ok := roles[os.Getenv(role)]; ok {
		if err := f(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	clearTestLabs()
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// labName is for a test's lab: runs at the same time do not meet, and what a
// killed one left can be told.
func labName(letter string) string { return fmt.Sprintf("gw%d%s", os.Getpid(), letter) }

var testLab = regexp.MustCompile(`^weft-(gw([0-9]+)[a-z])-h0\.0\.2$`)

func clearTestLabs() {
	names, _ := filepath.Glob("/run/netns/weft-gw*")
	for _, name := range names {
		m := testLab.FindStringSubmatch(filepath.Base(name))
		if m == nil {
			continue
		}
		if pid, err := strconv.Atoi(m[2]); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			lab.Down(m[1])
		}
	}
}

// built is the binary under test.
var built struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// binary builds weft once and returns where it is.
func binary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "weft-interop-"); built.err != nil {
			return
		}
		built.path = filepath.Join(built.dir, "weft")
		if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", built.path, "weft/cmd/weft").CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w:\n%s", err, out)
			return
		}
		built.err = os.Chmod(built.dir, 0o755) // another user runs it
	})
	if built.err != nil {
		t.Fatalf("build weft: %v", built.err)
	}
	return built.path
}
