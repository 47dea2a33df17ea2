package apps

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/kernel/kerneltest"
)

// gone waits until no process has a number.
func gone(t *testing.T, pid int) {
	t.Helper()
	for limit := time.Now().Add(kerneltest.Patience); !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH); time.Sleep(10 * time.Millisecond) {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if strings.Contains(string(b), ") Z ") { // ended, and nobody has asked for its status
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("process %d still runs", pid)
		}
	}
}

// written is the number that a shell has written.
func written(t *testing.T, p *process) int {
	t.Helper()
	select {
	case <-p.out.said:
	case <-time.After(kerneltest.Patience):
		t.Fatal("the program says nothing")
	}
	pid, err := strconv.Atoi(strings.Fields(p.out.String())[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// A client that does not end in time is killed with what it has started, and the error says so.
func TestAwait_killsTheGroupAtTheLimit(t *testing.T) {
	p, err := start(command(t.TempDir(), nil, "sh", "-c", "sleep 1000 & echo $!; echo up; wait"), "up")
	if err != nil {
		t.Fatal(err)
	}
	pid := written(t, p)
	p.out.said = nil // what follows is a client that says nothing
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := p.await(ctx, time.Now()); err == nil || !strings.Contains(err.Error(), "sh: has not done its work in time") {
		t.Errorf("%v", err)
	}
	gone(t, pid)
}

// A server and what it has started end by a signal.
func TestEnd_byItsSignal(t *testing.T) {
	p, err := start(command(t.TempDir(), nil, "sh", "-c", "sleep 1000 & echo $!; echo up; wait"), "up")
	if err != nil {
		t.Fatal(err)
	}
	pid := written(t, p)
	if err := errors.Join(p.Signal(syscall.SIGTERM), p.end()); err != nil {
		t.Error(err)
	}
	gone(t, pid)
}

// A client that says its word is interrupted, and prints its figures.
func TestAwait_interruptsWhatIsDone(t *testing.T) {
	p, err := start(command(t.TempDir(), nil, "sh", "-c", "trap 'echo figures; exit 0' INT; echo counted; while :; do sleep 0.1; done"), "counted")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), kerneltest.Patience)
	defer cancel()
	if took, err := p.await(ctx, time.Now()); err != nil || took <= 0 || p.out.String() != "counted\nfigures\n" {
		t.Errorf("%v, %v: %q", took, err, p.out)
	}
}

func TestAwait_tellsOfFailure(t *testing.T) {
	p, err := start(command(t.TempDir(), nil, "sh", "-c", "echo no server >&2; exit 3"), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.await(t.Context(), time.Now()); err == nil || !strings.Contains(err.Error(), `sh: exit status 3; it printed "no server\n"`) {
		t.Errorf("%v", err)
	}
}

// Programs run in their directory, which TMPDIR names, whatever this process has.
func TestCommand_hasADirectoryOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", "/nowhere")
	text, err := runOnce(t.Context(), command(dir, nil, "sh", "-c", "cat; echo $TMPDIR; pwd"), "input\n")
	if want := "input\n" + dir + "\n" + dir + "\n"; err != nil || text != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
}

// What a program prints is kept up to a bound.
func TestText_isBounded(t *testing.T) {
	x := newText("")
	for range 5 {
		if n, err := x.Write(make([]byte, maxText/3)); n != maxText/3 || err != nil {
			t.Fatal(n, err)
		}
	}
	if n := len(x.String()); n != maxText {
		t.Errorf("%d bytes are kept, want %d", n, maxText)
	}
}

func TestListens(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0402000A:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000   101        0 1 1 0
   1: 0402000A:1F90 0501000A:C001 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0
`
	for port, want := range map[uint16]bool{5432: true, 8080: false, 0: false, 6379: false} {
		if got := listens(table, port); got != want {
			t.Errorf("port %d: %v", port, got)
		}
	}
}

func TestNewest(t *testing.T) {
	all := []string{"/usr/sbin/postgres", "/usr/lib/postgresql/9/bin/postgres", "/usr/lib/postgresql/17/bin/postgres"}
	slices.SortFunc(all, newest)
	if want := "/usr/lib/postgresql/17/bin/postgres"; all[0] != want {
		t.Errorf("%v", all)
	}
}

// Every app has its programs here, and each of these a directory.
func TestWorks_areThoseOfApps(t *testing.T) {
	for _, a := range Apps {
		if w := works[a.Name]; (w == nil) != (a.mpi != "") || w != nil && (len(dirs[a.Name]) != 2 || w.port() == 0) {
			t.Errorf("%s: %v, directories %v", a.Name, w, dirs[a.Name])
		}
	}
	s, err := newSite(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.remove(); err != nil {
		t.Error(err)
	}
	if all, _ := filepath.Glob(s.dir); all != nil {
		t.Errorf("%v is left", all)
	}
}
