//go:build linux

// Package few tests what becomes of functions that open descriptors where there
// are few.
package few

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// blame is what an error may not say of a kernel that has all that is needed.
var blame = regexp.MustCompile(`Linux [0-9]|[Kk]ernel has (no|neither)|kernel option|requires >=|CAP_`)

// environment names the test that the process is for.
const environment = "WEFT_TEST_FEW_DESCRIPTORS"

// Descriptors calls open in a process of its own whose limit of descriptors is 0,
// 1, 2 and so on until it succeeds. Each failure must name the limit and how to
// raise it, and blame nothing else.
func Descriptors(t *testing.T, open func() (io.Closer, error)) {
	t.Helper()
	if os.Getenv(environment) != t.Name() {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "-test.v", "-test.run", "^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
		cmd.Env = append(os.Environ(), environment+"="+t.Name())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, out)
		} else if !strings.Contains(string(out), "failures named the limit") {
			t.Errorf("the test did not run:\n%s", out)
		}
		return
	}
	c, err := open() // with all that there are, and what the process keeps is opened
	if err != nil {
		t.Fatalf("with enough descriptors: %v", err)
	}
	c.Close()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	failures := 0
	for n := uint64(0); ; n++ {
		if n == before.Cur {
			t.Fatal("it never succeeds")
		}
		limited := before
		limited.Cur = n
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limited); err != nil {
			t.Fatal(err)
		}
		c, err := open()
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			c.Close()
			break
		}
		failures++
		text := err.Error()
		if !errors.Is(err, syscall.EMFILE) || !strings.Contains(text, "LimitNOFILE=") || !strings.Contains(text, "ulimit -n") {
			t.Errorf("with %d descriptors it does not name the limit: %v", n, err)
		}
		if blamed := blame.FindString(text); blamed != "" {
			t.Errorf("with %d descriptors it blames %q: %v", n, blamed, err)
		}
	}
	if failures == 0 {
		t.Error("no limit is too small: the test tests nothing")
	}
	t.Logf("%d failures named the limit", failures)
}
