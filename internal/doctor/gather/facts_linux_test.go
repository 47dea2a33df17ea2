package gather

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/doctor"
	"weft/internal/kernel/kerneltest"
)

// write makes a file.
func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A daemon is asked at the socket that its configuration names, whatever else is in that.
func TestAsk_socketOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ kind, status, role string }{{"host", `{"version":1,"mode":"offload","process":77}`, doctor.RoleHost}, {"switch", `{"version":1,"switch":"a0.2","process":77}`, doctor.RoleSwitch}} {
		socket := filepath.Join(dir, c.kind)
		s, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		go func() {
			for {
				conn, err := s.Accept()
				if err != nil {
					return
				}
				fmt.Fprintln(conn, c.status)
				conn.Close()
			}
		}()
		l := newLooker()
		file := write(t, socket+".yaml", "nosuchkey: 1\nstatus: "+socket+"\n")
		l.HostConfig, l.SwitchConfig = file, dir+"/no.yaml"
		if c.kind == "switch" {
			l.HostConfig, l.SwitchConfig = dir+"/no.yaml", file
		}
		if err := l.ask(context.Background()); err != nil {
			t.Fatal(err)
		}
		if !l.f.Daemon.Answers || l.f.Role != c.role || l.f.Daemon.Process != 77 || l.answered != socket {
			t.Errorf("%s: %+v at %s", c.kind, l.f.Daemon, l.answered)
		}
	}
}

// A switch without a status socket is not said to be dead.
func TestAsk_hiddenSwitch(t *testing.T) {
	dir := t.TempDir()
	l := newLooker()
	l.HostConfig, l.SwitchConfig = dir+"/no.yaml", write(t, dir+"/switch.yaml", "status: off\n")
	if err := l.ask(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !l.f.Daemon.Hidden || l.f.Role != doctor.RoleSwitch || l.f.Unknown["daemon"] == "" {
		t.Errorf("%+v, %v", l.f.Daemon, l.f.Unknown)
	}
}

// A switch that is stopped is said to be, and its process named.
func TestAsk_stoppedSwitch(t *testing.T) {
	const variable = "WEFT_TEST_LISTEN"
	if socket := os.Getenv(variable); socket != "" {
		if _, err := net.Listen("unix", socket); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	child := exec.Command(os.Args[0], "-test.run=TestAsk_stoppedSwitch$")
	child.Env = append(os.Environ(), variable+"="+socket)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	for end := time.Now().Add(kerneltest.Patience); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	l := newLooker()
	l.HostConfig, l.SwitchConfig = dir+"/no.yaml", write(t, dir+"/switch.yaml", "status: "+socket+"\n")
	if err := l.ask(context.Background()); err != nil {
		t.Fatal(err)
	}
	if d := l.f.Daemon; d.Process != child.Process.Pid || !d.Stopped || l.f.Role != doctor.RoleSwitch {
		t.Errorf("%+v", d)
	}
	if all := doctor.Examine(l.f); !strings.Contains(doctor.Text("x", all), "is stopped") {
		t.Error(doctor.Text("x", all))
	}
}

// Who has the lock is seen; who may not look does not take the daemon for dead.
func TestProcess(t *testing.T) {
	dir := t.TempDir()
	lock := write(t, dir+"/lock", fmt.Sprintln(os.Getpid()))
	write(t, dir+"/state.json", "{}")
	l := newLooker()
	if l.process(dir); !l.f.Daemon.Leftover || l.f.Daemon.Process != 0 {
		t.Errorf("without a lock: %+v", l.f.Daemon)
	}
	f, err := os.Open(lock)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l = newLooker()
	if l.process(dir); l.f.Daemon.Leftover || l.f.Daemon.Process != os.Getpid() || len(l.f.Unknown) != 0 {
		t.Errorf("with one: %+v, %v", l.f.Daemon, l.f.Unknown)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	os.Chmod(filepath.Dir(dir), 0o755)
	os.Chmod(dir, 0o755)
	for _, mode := range []os.FileMode{0o600, 0o644} { // the lock cannot be read; what the process has open cannot
		write(t, lock, "1\n")
		os.Chmod(lock, mode)
		l = newLooker()
		as(func() { l.process(dir) })
		if d := l.f.Daemon; d.Leftover || d.Process != 0 || l.f.Unknown["daemon"] == "" {
			t.Errorf("%o: %+v, %v", mode, d, l.f.Unknown)
		}
	}
}

// as runs a function as nobody, as far as files are concerned.
func as(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and ends with the thread
		unix.Setfsuid(65534)
		f()
	}()
	<-done
}
