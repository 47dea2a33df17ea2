package service

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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
