package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
)

// workingIn are the processes whose directory is in a directory, by their number.
func workingIn(dir string) (all []string) {
	list, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, p := range list {
		if at, err := os.Readlink(p); err == nil && strings.HasPrefix(at, dir+"/") {
			all = append(all, p)
		}
	}
	return all
}

// Who interrupts a run while programs work keeps nothing of it: no process, no directory, no
// namespace.
func TestBenchApps_interruptedLeavesNothing(t *testing.T) {
	slowtest.Unraced(t)
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	for _, name := range []string{"redis-server", "redis-benchmark"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	self, temp := program(t), filepath.Join("/tmp", "weft-interrupt-"+kerneltest.LabName("j"))
	if err := os.MkdirAll(temp, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temp)
	t.Setenv("TMPDIR", temp) // where a system user may go, and nobody else is
	var o benchAppsOptions
	o.topology, o.rows, o.json = "leaf-spine:leaves=2,spines=2,hosts=1", []string{"kernel-ecmp"}, true
	o.RateMbit, o.Seed, o.Lab, o.Weft, o.Env = 20, 3, kerneltest.LabName("j"), self.Args[:1], self.Env
	o.apps = []string{"redis"}
	o.shorten(func(string) bool { return false })
	o.Bytes = 1 << 30 // longer than anybody waits
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	done := make(chan error, 1)
	var out, notes bytes.Buffer
	go func() { done <- o.run(ctx, &out, &notes) }()
	var seen []string
	for limit := time.Now().Add(kerneltest.Patience); len(seen) == 0; time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-done:
			t.Fatalf("it ended by itself: %v\n%s%s", err, &out, &notes)
		default:
		}
		if seen = workingIn(temp); time.Now().After(limit) {
			t.Fatal("no program works")
		}
	}
	interrupt()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	case <-time.After(kerneltest.Patience):
		t.Fatal("it goes on")
	}
	if left := workingIn(temp); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if left, _ := filepath.Glob(temp + "/*"); len(left) > 0 {
		t.Errorf("directories are left: %v", left)
	}
	spaces, _ := filepath.Glob("/run/netns/*")
	if slices.ContainsFunc(spaces, func(s string) bool { return strings.Contains(s, o.Lab) }) {
		t.Errorf("namespaces of %s are left: %v", o.Lab, spaces)
	}
}
