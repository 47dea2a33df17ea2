package lab

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/kernel/kerneltest"
)

// Down ends what runs in the lab, also who does not listen, and nobody else.
func TestDown_endsProcesses(t *testing.T) {
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=2")})
	host := kerneltest.Hosts(l.Config.Topology)[0]
	start := func(inside bool, script string) *exec.Cmd {
		t.Helper()
		c := exec.Command("sh", "-c", script)
		var err error
		if inside {
			err = l.Do(host.ID, c.Start)
		} else {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		return c
	}
	sleeps := start(true, "exec sleep 60")
	deaf := start(true, "trap '' TERM; while :; do sleep 0.1; done")
	outside := start(false, "exec sleep 60")
	time.Sleep(200 * time.Millisecond) // until the trap is set
	r, err := Down(l.Config.Name)
	if err != nil {
		t.Fatal(err)
	}
	said := make(map[int]EndedProcess)
	for _, p := range r.Ended {
		said[p.PID] = p
	}
	if p := said[sleeps.Process.Pid]; p.Killed || p.Name != "sleep" || p.Namespace != l.Namespace(host.ID) {
		t.Errorf("the sleeping process: %+v of %v", p, r.Ended)
	}
	if p := said[deaf.Process.Pid]; !p.Killed {
		t.Errorf("the deaf process: %+v of %v", p, r.Ended)
	}
	if _, ok := said[outside.Process.Pid]; ok {
		t.Error("says that it has ended a process outside of the lab")
	}
	for what, c := range map[string]*exec.Cmd{"terminated": sleeps, "killed": deaf} {
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%v, want %s", err, what)
			}
		case <-time.After(kerneltest.Patience):
			t.Fatalf("it still runs; it should be %s", what)
		}
	}
	if err := outside.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process outside: %v", err)
	}
}
