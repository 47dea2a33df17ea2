package service

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestNotifier_tellsSystemd(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "3000000")
	t.Setenv("WATCHDOG_PID", "")
	n := NewNotifier()
	defer n.Close()
	if os.Getenv("NOTIFY_SOCKET") != "" || os.Getenv("WATCHDOG_USEC") != "" {
		t.Error("programs that the daemon starts would speak for it")
	}
	if n.Every() != 1500*time.Millisecond {
		t.Errorf("watchdog every %v, want half of 3 s", n.Every())
	}
	for _, c := range []struct {
		send func()
		want string
	}{
		{func() { n.Ready("all well") }, "READY=1\nSTATUS=all well"},
		{n.Reloading, "RELOADING=1\nMONOTONIC_USEC="},
		{n.Watchdog, "WATCHDOG=1"},
		{n.Stopping, "STOPPING=1"},
	} {
		c.send()
		b := make([]byte, 200)
		l.SetReadDeadline(time.Now().Add(time.Minute))
		size, err := l.Read(b)
		if err != nil || !strings.HasPrefix(string(b[:size]), c.want) {
			t.Errorf("got %q, %v; want %q", b[:size], err, c.want)
		}
	}
}

func TestNotifier_withoutSystemdDoesNothing(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "3000000")
	t.Setenv("WATCHDOG_PID", "1") // another process's
	n := NewNotifier()
	n.Ready("")
	n.Reloading()
	n.Close()
	if n.Every() != 0 {
		t.Errorf("watchdog every %v, for another process", n.Every())
	}
}
