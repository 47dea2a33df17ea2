package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"tailscale.com/ipn/ipnstate"
)

func TestDirectly(t *testing.T) {
	for _, c := range []struct {
		peer ipnstate.PeerStatus
		want string // in the error; "": none
	}{
		{ipnstate.PeerStatus{CurAddr: "10.0.0.2:41641"}, ""},
		{ipnstate.PeerStatus{CurAddr: "10.0.0.2:41641", Relay: "fra"}, ""}, // its relay is known, and not in use
		{ipnstate.PeerStatus{Relay: "fra"}, `"fra"`},
		{ipnstate.PeerStatus{PeerRelay: "10.0.0.3:7777:vni:1"}, "10.0.0.3:7777:vni:1"},
		{ipnstate.PeerStatus{}, "do not go directly"},
	} {
		err := directly(&c.peer)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.peer, err, c.want)
		}
	}
}

func TestMetric(t *testing.T) {
	const text = "# TYPE memstats_mallocs counter\nmemstats_mallocs_other 1\nmemstats_mallocs 12345\n"
	if n, err := metric(text, "memstats_mallocs"); err != nil || n != 12345 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := metric(text, "memstats"); err == nil {
		t.Error("no error for a counter that is not there")
	}
}

// What this process burns is in its processor time.
func TestProcessorTime(t *testing.T) {
	before, err := processorTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; {
		now, err := processorTime(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if now-before > 10*time.Millisecond {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the processor time stands still")
		}
	}
	const noProcess = 1 << 22 // the most that pid_max can be; processes have less
	if _, err := processorTime(noProcess); err == nil {
		t.Error("a process that is not there has used processor time")
	}
}

func TestConfine(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a mount namespace needs root")
	}
	dir, other := t.TempDir(), t.TempDir()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends
		if err := confine(dir); err != nil {
			t.Error(err)
			return
		}
		for name, want := range map[string]bool{dir: true, other: false, "/etc": false, "/run": false} {
			file := filepath.Join(name, "weft-confined")
			out, err := exec.Command("touch", file).CombinedOutput()
			if (err == nil) != want {
				t.Errorf("write %s: %v %s", file, err, out)
			}
			if err == nil && !want {
				os.Remove(file)
			}
		}
	}()
	<-done
	if err := os.WriteFile(filepath.Join(other, "file"), nil, 0o600); err != nil {
		t.Errorf("the rest of the process is confined, too: %v", err)
	}
}
