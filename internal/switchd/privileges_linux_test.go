package switchd

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/slowtest"
	"weft/lab"
)

// two is the mask of CAP_NET_ADMIN and CAP_NET_RAW as the kernel prints it.
var two = fmt.Sprintf("%016x", 1<<unix.CAP_NET_ADMIN|1<<unix.CAP_NET_RAW)

// privilegesOf is what the kernel says of a process.
func privilegesOf(t *testing.T, pid int) map[string]string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = strings.Join(strings.Fields(value), " ")
		}
	}
	return fields
}

// What is kept is enough for all that an agent does later, and a start finds what
// a crash has left.
func TestRun_keepsTwoCapabilities(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, "p", "fat-tree:k=2") // one core, two pods
	const config = "topology: fat-tree:k=2\nhello: 100ms\ndamping: {hold: 50ms}\n"
	edge := l.child("e0.0", config)
	for _, user := range []struct{ name, uids string }{{"nobody", "65534 65534 65534 65534"}, {"root", "0 0 0 0"}} {
		agg := l.child("a0.1", config+"user: "+user.name+"\n")
		l.within("they hear each other", func() bool {
			s := edge.status()
			return len(s.Neighbours) > 1 && s.Neighbours[1].Hears && s.Neighbours[1].State == "up" && agg.status().Switch == "a0.1"
		})
		got := privilegesOf(t, agg.cmd.Process.Pid)
		for name, want := range map[string]string{"Uid": user.uids, "CapPrm": two, "CapEff": two, "CapBnd": two, "CapAmb": two, "NoNewPrivs": "1"} {
			if got[name] != want {
				t.Errorf("user %s: %s is %q, want %q", user.name, name, got[name], want)
			}
		}
		const link = "a0.1-c1.1"
		before := agg.status().Routes.Changed
		if _, err := l.Fail(link, lab.FailLoud); err != nil {
			t.Fatal(err)
		}
		l.within("routes are changed", func() bool {
			s := agg.status()
			return s.Routes.Changed > before && slices.Contains(s.Down, link)
		})
		if _, err := l.Heal(); err != nil {
			t.Fatal(err)
		}
		l.within("the link is back", func() bool { return !slices.Contains(agg.status().Down, link) })
		if s := agg.status(); s.Routes.Errors > 0 {
			t.Errorf("user %s: routes %+v", user.name, *s.Routes)
		}
		agg.cmd.Process.Kill() // the next one finds what it attached
		agg.cmd.Wait()
		l.within("it is missed", func() bool { return edge.status().Neighbours[1].State == "down" })
	}
}

func TestRun_nobodySuch(t *testing.T) {
	l := upLab(t, "q", "fat-tree:k=2")
	p := l.child("e0.0", "topology: fat-tree:k=2\nuser: weft-nobody-such\n")
	if err := p.cmd.Wait(); err == nil || !p.log.has("switch.yaml:2: user") || !p.log.has("create it, or name another") {
		t.Errorf("%v, %s", err, p.log.String())
	}
}

// systemd hears of the agent from the program that does the work, and as long as
// that works.
func TestRun_tellsSystemd(t *testing.T) {
	l := upLab(t, "r", "fat-tree:k=2")
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the user nobody writes there
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "notify")
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer systemd.Close()
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	says := func(want string) {
		t.Helper()
		for {
			b := make([]byte, 300)
			systemd.SetReadDeadline(time.Now().Add(time.Minute))
			n, err := systemd.Read(b)
			if err != nil {
				t.Fatalf("does not say %s: %v", want, err)
			}
			if strings.HasPrefix(string(b[:n]), want) {
				return
			}
			if string(b[:n]) != "WATCHDOG=1" {
				t.Errorf("says %q, want %s", b[:n], want)
			}
		}
	}
	p := l.child("e0.0", "topology: fat-tree:k=2\n", "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=2000000")
	says("READY=1\nSTATUS=e0.0 of fat-tree:k=2")
	says("WATCHDOG=1")
	p.cmd.Process.Signal(syscall.SIGHUP)
	says("RELOADING=1")
	says("READY=1")
	p.cmd.Process.Signal(syscall.SIGTERM)
	says("STOPPING=1")
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A loop that does not come round is found out.
func TestAgent_late(t *testing.T) {
	a := &Agent{started: time.Now().Add(-time.Minute)}
	a.due = 61 * time.Second
	if late := a.late(); late >= 0 {
		t.Errorf("late by %v, a second before it is due", late)
	}
	a.due = 50 * time.Second
	if late := a.late(); late < 10*time.Second {
		t.Errorf("late by %v, want 10 s", late)
	}
}
