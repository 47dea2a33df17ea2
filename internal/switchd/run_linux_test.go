package switchd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/service"
)

// childFile makes the test program a weft switch with that configuration: all
// threads of a daemon must be in its network namespace.
const childFile = "WEFT_TEST_SWITCH"

// readOnly is an environment variable by which a child sees /proc/sys read-only.
const readOnly = "WEFT_TEST_READ_ONLY=1"

func TestMain(m *testing.M) {
	file := os.Getenv(childFile)
	if file == "" {
		clearLeftovers()
		os.Exit(m.Run())
	}
	if taken("WEFT_TEST_READ_ONLY") != "" {
		for _, flags := range []uintptr{unix.MS_BIND, unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY} {
			if err := unix.Mount("/proc/sys", "/proc/sys", "", flags, ""); err != nil {
				panic(err)
			}
		}
	}
	signals, _ := service.Signals()
	if err := Run(context.Background(), file, signals, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "ended:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child is a weft switch in a process of its own.
type child struct {
	l      *testLab
	cmd    *exec.Cmd
	file   string
	socket string
	log    messages
}

type messages struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (m *messages) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all.Write(b)
}

func (m *messages) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all.String()
}

func (m *messages) has(s string) bool { return strings.Contains(m.String(), s) }

func (l *testLab) child(node, config string, env ...string) *child {
	l.t.Helper()
	dir, err := os.MkdirTemp("", "weft-td-") // that any user may see, unlike the test's
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { os.RemoveAll(dir) })
	c := &child{l: l, file: filepath.Join(dir, "switch.yaml"), socket: filepath.Join(dir, "s")}
	c.write(config)
	c.cmd = exec.Command("/proc/self/exe")
	c.cmd.Env = append(append(os.Environ(), childFile+"="+c.file), env...)
	c.cmd.Stderr = &c.log
	if slices.Contains(env, readOnly) {
		c.cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	}
	if err := l.Do(l.id(node), c.cmd.Start); err != nil { // it keeps the namespace of this thread
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		c.cmd.Process.Kill()
		c.cmd.Wait()
		if c.log.has("DATA RACE") { // whose exit code nobody may have looked at
			l.t.Errorf("%s has a data race", node)
		}
		if l.t.Failed() {
			l.t.Logf("%s: %s", node, c.log.String())
		}
	})
	return c
}

func (c *child) write(config string) {
	c.l.t.Helper()
	if err := os.WriteFile(c.file, []byte(config+"status: "+c.socket+"\n"), 0o644); err != nil {
		c.l.t.Fatal(err)
	}
}

// status asks the child; the zero value if it does not answer.
func (c *child) status() (s Status) {
	conn, err := net.Dial("unix", c.socket)
	if err != nil {
		return s
	}
	defer conn.Close()
	if b, err := io.ReadAll(conn); err == nil {
		json.Unmarshal(b, &s)
	}
	return s
}

func TestRun_isASwitch(t *testing.T) {
	l := upLab(t, "x", "fat-tree:k=2") // one core, two pods
	const config = "topology: fat-tree:k=2\nhello: 100ms\nnode: auto\n"
	edge, agg := l.child("e0.0", config), l.child("a0.1", config)
	l.within("they hear each other", func() bool {
		s := edge.status()
		return s.Switch == "e0.0" && len(s.Neighbours) == 2 && s.Neighbours[1].Hears
	})
	// Reloading: the keys can change, all else not.
	key := "keys:\n- {id: 1, key: c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M=}\n"
	edge.write(config + key)
	edge.cmd.Process.Signal(syscall.SIGHUP)
	l.within("reloaded", func() bool { return edge.log.has("reloaded: 1 keys") })
	l.within("another key is nobody", func() bool { return edge.status().Rejected["key"] > 0 })
	agg.write(config + key)
	agg.cmd.Process.Signal(syscall.SIGHUP)
	l.within("the keys are the same", func() bool {
		s := edge.status()
		return len(s.Neighbours) > 1 && s.Neighbours[1].Hears && s.Neighbours[1].State == "up"
	})
	edge.write(strings.Replace(config, "100ms", "30ms", 1) + key)
	edge.cmd.Process.Signal(syscall.SIGHUP)
	l.within("refused", func() bool { return edge.log.has("only keys") })
	edge.write("helo: 1\n")
	edge.cmd.Process.Signal(syscall.SIGHUP)
	l.within("refused with the line", func() bool { return edge.log.has("switch.yaml:1: helo: unknown key; did you mean hello?") })
	// The end is an orderly one. A neighbour that has not heard the switch in time does not
	// believe its goodbye.
	l.within("they hear each other again", func() bool {
		s := edge.status()
		return len(s.Neighbours) > 1 && s.Neighbours[1].Hears && s.Neighbours[1].State == "up"
	})
	agg.cmd.Process.Signal(syscall.SIGTERM)
	if err := agg.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	l.within("it has said goodbye", func() bool { s := edge.status(); return strings.HasPrefix(s.Neighbours[1].Why, "has left in order") })
	if s := edge.status(); s.Neighbours[1].State != "up" || s.Routes.Errors > 0 {
		t.Errorf("%+v, routes %+v", s.Neighbours[1], s.Routes)
	}
}

func TestRun_refusals(t *testing.T) {
	l := upLab(t, "y", "fat-tree:k=2", "e0.0", "a0.1", "h0.0.2")
	for node, c := range map[string]struct{ config, want string }{
		"h0.0.2": {"topology: fat-tree:k=2\n", "node: no address on lo is a switch's"},
		"e0.0":   {"topology: fat-tree:k=2\nports: eth%d\n", "no such device"},
	} {
		p := l.child(node, c.config)
		if err := p.cmd.Wait(); err == nil || !p.log.has(c.want) {
			t.Errorf("%s: %v, %s", node, err, p.log.String())
		}
	}
}
