package service

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/eventlog"
)

// systemd stands for the other end of NOTIFY_SOCKET.
type systemd struct {
	t *testing.T
	net.PacketConn
}

func newSystemd(t *testing.T) systemd {
	socket := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenPacket("unixgram", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "3000000")
	t.Setenv("WATCHDOG_PID", "")
	return systemd{t, l}
}

// told is what it was told, without when; "" for nothing.
func (s systemd) told() string {
	b := make([]byte, 200)
	s.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // what is sent to a local socket is there at once
	n, _, err := s.ReadFrom(b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		s.t.Fatal(err)
	}
	state, _, _ := strings.Cut(string(b[:n]), "\nMONOTONIC_USEC=")
	return state
}

func TestLoop_tellsSystemdAndTheLog(t *testing.T) {
	system := newSystemd(t)
	var lines strings.Builder
	config, alive, refuse := "first", true, error(nil)
	l := Loop{
		Notifier: NewNotifier(),
		Log:      eventlog.Lines(&lines),
		Summary:  func() string { return "goes by " + config },
		Reload: func() (string, error) {
			if refuse == nil {
				config = "second"
			}
			return "all of " + config, refuse
		},
		Alive: func() bool { return alive },
	}
	defer l.Close()
	want := func(what string, told ...string) {
		t.Helper()
		for _, state := range append(told, "") {
			if got := system.told(); got != state {
				t.Errorf("%s: systemd is told %q, want %q", what, got, state)
			}
		}
	}
	l.Begin()
	want("begin", "READY=1\nSTATUS=goes by first")
	l.Watch()
	want("watch", "WATCHDOG=1")
	alive = false
	l.Watch()
	want("watch a dead one")
	refuse = errors.New("line 3 is wrong")
	if l.Signal(syscall.SIGHUP) {
		t.Error("SIGHUP ends the daemon")
	}
	want("a bad configuration", "RELOADING=1", "READY=1\nSTATUS=goes by first")
	refuse, alive = nil, true
	if l.Signal(syscall.SIGHUP) {
		t.Error("SIGHUP ends the daemon")
	}
	want("a good one", "WATCHDOG=1", "RELOADING=1", "READY=1\nSTATUS=goes by second")
	for _, s := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		if !l.Signal(s) {
			t.Errorf("%v does not end the daemon", s)
		}
	}
	want("signals that end it") // Stopping is said when the daemon does stop
	var got []string
	for line := range strings.Lines(lines.String()) {
		if !strings.HasPrefix(line, "note: runs as nobody") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if text := strings.Join(got, "; "); text != "goes by first; reload refused, all stays as it is: line 3 is wrong; reloaded: all of second; terminated: stopping; interrupt: stopping" {
		t.Errorf("the log: %s", text)
	}
}

// Without systemd the log says the same, and nobody is told otherwise.
func TestLoop_withoutSystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	l := Loop{Notifier: NewNotifier(), Log: eventlog.Lines(io.Discard),
		Summary: func() string { return "" }, Reload: func() (string, error) { return "", nil }, Alive: func() bool { return true }}
	l.Begin()
	l.Watch()
	if l.Signal(syscall.SIGHUP) || !l.Signal(syscall.SIGTERM) {
		t.Error("signals are taken for others")
	}
	l.Close()
}
