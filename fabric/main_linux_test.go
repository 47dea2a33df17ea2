package fabric

import (
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Test labs are named t, the process's number and a letter, so that runs at
// the same time do not meet and what a killed run left can be told.
var testLab = regexp.MustCompile(`^weft-(t([0-9]+)[a-z])-`)

func TestMain(m *testing.M) {
	if os.Geteuid() == 0 {
		clearTestLabs(func(pid int) bool { return syscall.Kill(pid, 0) != nil })
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		clearTestLabs(func(pid int) bool { return pid == os.Getpid() })
		os.Exit(1)
	}()
	code := m.Run()
	if os.Geteuid() == 0 {
		if _, err := Down(sharedLab()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func clearTestLabs(of func(pid int) bool) {
	names, _ := namespaces("weft-t")
	for _, ns := range names {
		m := testLab.FindStringSubmatch(ns)
		if m == nil {
			continue
		}
		if pid, err := strconv.Atoi(m[2]); err == nil && of(pid) {
			tearDown(m[1])
			os.Remove(lockPath(m[1]))
		}
	}
}

func testLabName(letter string) string { return fmt.Sprintf("t%d%s", os.Getpid(), letter) }

// sharedLab is the name of the lab that tests share and TestMain takes down.
func sharedLab() string { return testLabName("s") }

func needRoot(t testing.TB) {
	t.Helper()
	for number, name := range map[int]string{unix.CAP_SYS_ADMIN: "CAP_SYS_ADMIN", unix.CAP_NET_ADMIN: "CAP_NET_ADMIN"} {
		if err := requireCapability(number, name); err != nil {
			t.Skipf("network namespaces: %v", err)
		}
	}
}

// testNamespace makes an empty namespace for the duration of a test.
func testNamespace(t testing.TB, node string) string {
	t.Helper()
	needRoot(t)
	if err := prepareNetnsDir(); err != nil {
		t.Fatal(err)
	}
	name := labPrefix(testLabName("n")) + node
	t.Cleanup(func() { deleteNamespace(name) })
	if err := createNamespace(name, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	return name
}

// upLab brings up a lab for the duration of a test.
func upLab(t testing.TB, cfg LabConfig) *Lab {
	t.Helper()
	needRoot(t)
	if cfg.Name == "" {
		cfg.Name = testLabName("a")
	}
	t.Cleanup(func() {
		if _, err := Down(cfg.Name); err != nil {
			t.Error(err)
		}
	})
	l, err := Up(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// patience is how long busy processors are waited for.
const patience = 30 * time.Second

// within waits for something that takes the kernel a moment.
func within(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}
