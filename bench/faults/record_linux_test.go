package faults

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What a bench that was killed has left is ended and removed, and nothing else is.
func TestRecord(t *testing.T) {
	run := func() *exec.Cmd {
		c := exec.Command("sleep", "1000")
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		return c
	}
	left, other := run(), run()
	dir := filepath.Join(t.TempDir(), dirPrefix+"1")
	foreign := t.TempDir()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &record{path: filepath.Join(t.TempDir(), "lab.faults")}
	if n, err := r.clear(); n != 0 || err != nil {
		t.Fatalf("%d, %v without a record", n, err)
	}
	for _, d := range []string{dir, foreign} {
		if err := r.add(recorded{Dir: d}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.process(left.Process.Pid); err != nil {
		t.Fatal(err)
	}
	// A process that has got the number of a recorded one.
	if err := r.add(recorded{PID: other.Process.Pid, Start: "1"}); err != nil {
		t.Fatal(err)
	}
	if n, err := r.clear(); n != 1 || err != nil {
		t.Errorf("%d were ended, %v", n, err)
	}
	if err := left.Wait(); err == nil || left.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("what was left still runs: %v", err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another process was ended: %v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("another directory: %v", err)
	}
	if _, err := os.Stat(r.path); !os.IsNotExist(err) {
		t.Errorf("the record is still there: %v", err)
	}
}

// A switch whose daemon does not run is an error, not a panic.
func TestAgentKilled_none(t *testing.T) {
	if _, err := agentKilled("e0.0")(&Bed{}); err == nil || !strings.Contains(err.Error(), "e0.0") {
		t.Error(err)
	}
}

// What the doctor finds each time before anything is broken is learned, and told.
func TestInBoth(t *testing.T) {
	found, err := wrong(`[{"check":"a","cause":"x"},{"check":"a","cause":"x"},{"node":"n","check":"a","cause":"x"},{"check":"b","ok":true},{"check":"c","cause":"2 %"}]`)
	if err != nil {
		t.Fatal(err)
	}
	later, err := wrong(`[{"check":"c","cause":"3 %"},{"node":"n","check":"a","cause":"x"},{"check":"a","cause":"x"}]`)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(inBoth(found, later)); got != "[a: x n: a: x]" {
		t.Error(got)
	}
	var b bytes.Buffer
	bed := &Bed{options: Options{Notes: &b}, known: map[string][]string{"n": {"1"}, string(Fabric): {"2"}}}
	if got := fmt.Sprint(bed.knownTo(Fault{}, "n"), bed.knownTo(Fault{Fabric: true}, "n")); got != "[1] [1 2]" {
		t.Error(got)
	}
	if bed.note("at %s: %s", "n", "1"); b.String() != "at n: 1\n" {
		t.Errorf("%q", b.String())
	}
}

// Each fault at a place says where, as the table's words alone are too wide.
func TestAll_places(t *testing.T) {
	for _, list := range [][]Fault{ofCables, ofSwitches} {
		for _, f := range list {
			if len(f.At) == 0 && f.Name != "duplicate-address" { // which has the address
				t.Errorf("%s: no place is to be named", f.Name)
			}
		}
	}
	for _, f := range All() {
		for _, words := range f.Cause {
			if strings.Join(words, "") == "" {
				t.Errorf("%s: anything names it", f.Name)
			}
		}
		for _, at := range f.At {
			if got := placesIn(at); len(got) != 1 || got[0] != at {
				t.Errorf("%s: %q is no place", f.Name, at)
			}
		}
	}
}
