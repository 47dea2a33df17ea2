package lab

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/topology"
)

func namespacesOf(t *testing.T, lab string) []string {
	t.Helper()
	names, err := kernel.Namespaces(labPrefix(lab))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestUp_twiceIsOnce(t *testing.T) {
	cfg := Config{Name: kerneltest.LabName("a"), Topology: kerneltest.Topology(t, "fat-tree:k=2")}
	l := upLab(t, cfg)
	if l.Reused {
		t.Error("reused the first time")
	}
	before := inode(t, l, 0)
	again, err := Up(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if !again.Reused || inode(t, again, 0) != before {
		t.Errorf("built anew; reused = %v", again.Reused)
	}
	cfg.RateMbit = 33
	if _, err := Up(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "lab "+cfg.Name+" is in use (fat-tree:k=2, rate 20") {
		t.Errorf("another rate: error %v", err)
	}
	if _, err := Hold(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "is in use") {
		t.Errorf("hold: error %v", err)
	}
}

// inode tells namespaces apart.
func inode(t *testing.T, l *Lab, id topology.NodeID) string {
	t.Helper()
	var s string
	err := l.Do(id, func() (err error) {
		s, err = os.Readlink("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDown_leavesNothing(t *testing.T) {
	kerneltest.NeedRoot(t)
	roots, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=4")})
	name := l.Config.Name
	if n := len(namespacesOf(t, name)); n != 36 {
		t.Errorf("%d namespaces, want 36", n)
	}
	now, err := netlink.LinkList()
	if err != nil || len(now) != len(roots) {
		t.Errorf("the root namespace had %d links and has %d (%v)", len(roots), len(now), err)
	}
	n, err := Down(name)
	if err != nil || n.Namespaces != 36 {
		t.Errorf("Down: %+v, %v", n, err)
	}
	if left := namespacesOf(t, name); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(kernel.RunDir, name+"*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if n, err := Down(name); n.Namespaces != 0 || err != nil {
		t.Errorf("Down again: %+v, %v", n, err)
	}
	if _, err := Open(name); err == nil || !strings.Contains(err.Error(), "is not up") {
		t.Errorf("Open: %v", err)
	}
}

// leaveHalf imitates a process that died while building.
func leaveHalf(t *testing.T, cfg Config, state bool) {
	t.Helper()
	if err := kernel.PrepareNetnsDir(); err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"h0.0.2", "e0.0", "a9.9"} {
		if err := kernel.CreateNamespace(cfg.namespace(node), func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	// One of which the name was made and the namespace was not.
	if err := os.WriteFile(filepath.Join(kernel.NetnsDir, cfg.namespace("e1.0")), nil, 0o444); err != nil {
		t.Fatal(err)
	}
	if !state {
		return
	}
	lock, err := lockLab(cfg.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeState(cfg.Name, labState{labSettings: cfg.settings()}); err != nil {
		t.Fatal(err)
	}
	lock.release()
}

func TestUp_repairsHalfBuilt(t *testing.T) {
	slowtest.System(t)
	kerneltest.NeedRoot(t)
	cfg, err := Config{Name: kerneltest.LabName("b"), Topology: kerneltest.Topology(t, "fat-tree:k=2")}.complete()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Down(cfg.Name) })
	for _, state := range []bool{true, false} {
		leaveHalf(t, cfg, state)
		if state {
			if _, err := Open(cfg.Name); err == nil || !strings.Contains(err.Error(), "half built") {
				t.Errorf("Open: %v", err)
			}
		}
		l := upLab(t, cfg)
		if names := namespacesOf(t, cfg.Name); len(names) != 7 || slices.Contains(names, cfg.namespace("a9.9")) {
			t.Errorf("state %v: namespaces %v", state, names)
		}
		for _, n := range l.Status() {
			if n.Error != "" {
				t.Errorf("state %v: %s: %s", state, n.Node, n.Error)
			}
		}
		if _, err := Down(cfg.Name); err != nil {
			t.Fatal(err)
		}
	}
	// Somebody deletes a namespace of a complete lab.
	upLab(t, cfg)
	if err := kernel.DeleteNamespace(cfg.namespace("3.0")); err != nil {
		t.Fatal(err)
	}
	if err := kernel.DeleteNamespace(cfg.namespace("h0.0.2")); err != nil {
		t.Fatal(err)
	}
	l := upLab(t, cfg)
	for _, want := range []string{"h0.0.2: made its namespace again", "h0.0.2-e0.0: made the link again"} {
		if !slices.Contains(l.Repaired, want) {
			t.Errorf("repaired %q, want %q among it", l.Repaired, want)
		}
	}
	wantAsBuilt(t, l)
}

func TestDown_clearsHalfBuilt(t *testing.T) {
	kerneltest.NeedRoot(t)
	cfg, err := Config{Name: kerneltest.LabName("c"), Topology: kerneltest.Topology(t, "fat-tree:k=2")}.complete()
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []bool{true, false} {
		leaveHalf(t, cfg, state)
		if n, err := Down(cfg.Name); n.Namespaces != 4 || err != nil {
			t.Errorf("state %v: Down: %+v, %v", state, n, err)
		}
		if left := namespacesOf(t, cfg.Name); len(left) > 0 {
			t.Errorf("state %v: left %v", state, left)
		}
	}
}

// However far building has come when its context ends, nothing stays.
func TestUp_cancelled(t *testing.T) {
	kerneltest.NeedRoot(t)
	cfg := Config{Name: kerneltest.LabName("d"), Topology: kerneltest.Topology(t, "fat-tree:k=2")}
	t.Cleanup(func() { Down(cfg.Name) })
	for _, at := range []int{1, 9, 18} { // of 21 steps: creating, wiring, configuring
		ctx, cancel := context.WithCancel(t.Context())
		cfg.Progress = func(done, _ int) {
			if done == at {
				cancel()
			}
		}
		if _, err := Up(ctx, cfg); err == nil || !strings.Contains(err.Error(), "context canceled") {
			t.Errorf("cancelled at step %d: error %v", at, err)
		}
		if left := namespacesOf(t, cfg.Name); len(left) > 0 {
			t.Errorf("cancelled at step %d: left %v", at, left)
		}
		if s, err := readState(cfg.Name); s != nil || err != nil {
			t.Errorf("cancelled at step %d: state %v, %v", at, s, err)
		}
		cancel()
	}
}

func TestUp_sideBySide(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=2")
	a := upLab(t, Config{Name: kerneltest.LabName("e"), Topology: top})
	b := upLab(t, Config{Name: kerneltest.LabName("f"), Topology: top, RateMbit: 5})
	if inode(t, a, 0) == inode(t, b, 0) {
		t.Error("the labs share a namespace")
	}
	if _, err := Down(a.Config.Name); err != nil {
		t.Fatal(err)
	}
	for _, n := range b.Status() {
		if n.Error != "" {
			t.Errorf("%s: %s", n.Node, n.Error)
		}
	}
}

func TestHold(t *testing.T) {
	kerneltest.NeedRoot(t)
	cfg := Config{Name: kerneltest.LabName("g"), Topology: kerneltest.Topology(t, "fat-tree:k=2")}
	l, err := Hold(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	want := "lab " + cfg.Name + " is in use by process"
	if _, err := Down(cfg.Name); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Down: %v", err)
	}
	if _, err := Up(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Up: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
	if left := namespacesOf(t, cfg.Name); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(kernel.RunDir, cfg.Name+"*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	// The owner dies without Close: the lock goes, the state says ephemeral.
	if l, err = Hold(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	before := inode(t, l, 0)
	l.lock.release()
	l.lock = nil
	l = upLab(t, cfg)
	if l.Reused || inode(t, l, 0) == before {
		t.Error("took over what a dead process left")
	}
}

func TestLabName_bad(t *testing.T) {
	for _, name := range []string{"", "A", "a-b", "a.b", "../x", "thirteenchars"} {
		if _, err := Down(name); err == nil || !strings.Contains(err.Error(), "lab name") {
			t.Errorf("Down(%q): %v", name, err)
		}
		if _, err := Open(name); err == nil || !strings.Contains(err.Error(), "lab name") {
			t.Errorf("Open(%q): %v", name, err)
		}
	}
}

// Exec replaces the process, so the test runs itself once more to be replaced.
func TestExec(t *testing.T) {
	const nested = "WEFT_TEST_EXEC_LAB"
	if name := os.Getenv(nested); name != "" {
		l, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Fatal(l.Exec(0, []string{"sh", "-c", "readlink /proc/self/ns/net; exit 7"}, os.Environ()))
	}
	l := upLab(t, Config{Name: kerneltest.LabName("h"), Topology: kerneltest.Topology(t, "fat-tree:k=2")})
	cmd := exec.Command(os.Args[0], "-test.run", "^TestExec$")
	cmd.Env = append(os.Environ(), nested+"="+l.Config.Name)
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("exit code %d (%v), want 7: %s", cmd.ProcessState.ExitCode(), err, out)
	}
	if got, want := strings.TrimSpace(string(out)), inode(t, l, 0); got != want {
		t.Errorf("ran in %q, want %q", got, want)
	}
}

func TestUp_unprivileged(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root has the capabilities")
	}
	_, err := Up(t.Context(), Config{Name: "tnone", Topology: kerneltest.Topology(t, "fat-tree:k=2")})
	if err == nil || !strings.Contains(err.Error(), "run as root") {
		t.Errorf("Up: %v", err)
	}
}
