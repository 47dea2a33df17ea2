package frr

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

func TestMain(m *testing.M) { kerneltest.Main(m, nil) }

const config = "hostname x\nrouter bgp 4200000001\n bgp router-id 192.0.2.1\nexit\n"

// Daemons start once, again when one has ended, and leave nothing when they are stopped.
func TestSwitch(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	ns := kerneltest.Namespace(t, "a")
	parent, err := os.MkdirTemp("", "weft-frr") // that of a test is closed to the user frr
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	if err := os.Chmod(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	s := Switch{Dir: filepath.Join(parent, "x"), BFD: true}
	t.Cleanup(func() { s.Stop() })
	start := func(want ...string) {
		t.Helper()
		var started []string
		err := kernel.InNamespace(ns, func() (err error) {
			started, err = s.Start(config)
			return err
		})
		if err != nil || !slices.Equal(started, want) {
			t.Fatalf("started %v (%v), want %v", started, err, want)
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "zebra does not run") {
		t.Errorf("before the start: %v", err)
	}
	start("zebra", "bfdd", "bgpd")
	start()
	out, err := s.Show("show bgp summary", "show bfd peers")
	if err != nil || !strings.Contains(string(out), "BFD Peers") {
		t.Errorf("%s, %v", out, err)
	}
	pid := s.process("bgpd")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	kerneltest.Within(t, kerneltest.Patience, "the end of bgpd", func() bool { return s.process("bgpd") == 0 })
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "bgpd does not run") {
		t.Errorf("without bgpd: %v", err)
	}
	start("bgpd")
	var elsewhere []string
	for _, name := range s.Daemons() {
		dir, err := os.Readlink(s.crashLink(name))
		if err != nil {
			t.Fatal(err)
		}
		elsewhere = append(elsewhere, dir)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range append(elsewhere, s.Dir) {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("left: %s (%v)", dir, err)
		}
	}
	if err := s.Stop(); err != nil {
		t.Errorf("stopped twice: %v", err)
	}
}

// Stop removes nothing that a link in a directory of FRR's user leads to.
func TestSwitch_linksElsewhere(t *testing.T) {
	kept := t.TempDir()
	s := Switch{Dir: filepath.Join(t.TempDir(), "x")}
	if err := os.Mkdir(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(kept, s.crashLink("zebra")); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

func TestSwitch_errors(t *testing.T) {
	if err := CheckDir("/" + strings.Repeat("x", 100)); err == nil || !strings.Contains(err.Error(), "choose shorter names") {
		t.Error(err)
	}
	if err := Available(); err != nil {
		t.Skip(err)
	}
	if CheckConfig(config) != nil || CheckConfig("router nonsense\n") == nil {
		t.Error("the check of configurations accepts nothing, or anything")
	}
}
