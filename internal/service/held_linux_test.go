package service

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// One who asks a process that is stopped is told so.
func TestAskStatus_stoppedProcess(t *testing.T) {
	const variable = "WEFT_TEST_LISTENS"
	if path := os.Getenv(variable); path != "" {
		if _, err := net.Listen("unix", path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // until it is killed
	}
	path := filepath.Join(t.TempDir(), "s")
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), variable+"="+path)
	runtime.LockOSThread() // the child ends with this thread, also if the test is killed
	defer runtime.UnlockOSThread()
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	await := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not within a minute: %s", what)
			}
		}
	}
	await("it listens", func() bool {
		conn, err := net.Dial("unix", path)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	if isHeld(c.Process.Pid) {
		t.Error("it is taken for stopped")
	}
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await("it is stopped", func() bool { return isHeld(c.Process.Pid) })
	if _, err := AskStatus(context.Background(), path, "weft host"); err == nil || !strings.Contains(err.Error(), "is stopped") {
		t.Errorf("%v", err)
	}
}

// A process that a debugger holds is not said to go on with SIGCONT.
func TestHeldState(t *testing.T) {
	for stat, held := range map[string]bool{
		"12 (weft) T 1 12": true, "12 (a) T (b) t 1 12": false, "12 (weft) t 1 12": false, "12 (T) S 1 12": false, "": false, "12 (x)": false,
	} {
		if stoppedState([]byte(stat)) != held {
			t.Errorf("%q: held is %t", stat, !held)
		}
	}
}
