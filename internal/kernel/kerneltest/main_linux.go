package kerneltest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// Test labs are named t, the process's number and a letter, so that runs at
// the same time do not meet and what a killed run left can be told.
var testLab = regexp.MustCompile(`^weft-(t([0-9]+)[a-z])-`)

// LabName is the name of one of this process's labs. Letters n and s are taken:
// by Namespace and SharedLab.
func LabName(letter string) string { return fmt.Sprintf("t%d%s", os.Getpid(), letter) }

// Main is the TestMain of a package whose tests make network namespaces. It clears
// away what killed runs have left, and what this one leaves when it is interrupted.
// down ends a lab of the tests, its processes, too; nil where there are none.
func Main(m *testing.M, down func(lab string) error) {
	root := os.Geteuid() == 0
	if root {
		clearTestLabs(down, func(pid int) bool { return syscall.Kill(pid, 0) != nil })
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		clearTestLabs(down, func(pid int) bool { return pid == os.Getpid() })
		os.Exit(1)
	}()
	code := m.Run()
	if root && down != nil {
		if err := down(SharedLab()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// clearTestLabs removes the labs and namespaces of tests of some processes.
func clearTestLabs(down func(lab string) error, of func(pid int) bool) {
	names, _ := kernel.Namespaces("weft-t")
	for _, ns := range names {
		m := testLab.FindStringSubmatch(ns)
		if m == nil {
			continue
		}
		if pid, err := strconv.Atoi(m[2]); err != nil || !of(pid) {
			continue
		}
		if down != nil {
			down(m[1])
		}
		// down refuses a lab that this process holds, which ends with it.
		kernel.DeleteNamespace(ns)
		for _, suffix := range []string{".json", ".json.new", ".lock"} {
			os.Remove(filepath.Join(kernel.RunDir, m[1]+suffix))
		}
	}
}

// SharedLab is the name of the lab that tests share and TestMain takes down.
func SharedLab() string { return LabName("s") }

// NeedRoot skips a test that this process has not the privileges for.
func NeedRoot(t testing.TB) {
	t.Helper()
	for number, name := range map[int]string{unix.CAP_SYS_ADMIN: "CAP_SYS_ADMIN", unix.CAP_NET_ADMIN: "CAP_NET_ADMIN"} {
		if err := kernel.RequireCapability(number, name); err != nil {
			t.Skipf("network namespaces: %v", err)
		}
	}
}

// Namespace makes an empty namespace for the duration of a test.
func Namespace(t testing.TB, node string) string {
	t.Helper()
	NeedRoot(t)
	if err := kernel.PrepareNetnsDir(); err != nil {
		t.Fatal(err)
	}
	name := "weft-" + LabName("n") + "-" + node
	t.Cleanup(func() { kernel.DeleteNamespace(name) })
	if err := kernel.CreateNamespace(name, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	return name
}

// Patience is how long busy processors are waited for.
const Patience = time.Minute

// Within waits for something that takes the kernel a moment.
func Within(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}

// Shell runs a script in a namespace, and returns what it prints.
func Shell(t testing.TB, ns, script string) string {
	t.Helper()
	var out []byte
	err := kernel.InNamespace(ns, func() error {
		cmd := exec.Command("sh", "-c", script)
		var err error
		if out, err = cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
