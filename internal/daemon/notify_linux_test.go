package daemon

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
	n := newNotifier()
	defer n.close()
	if os.Getenv("NOTIFY_SOCKET") != "" || os.Getenv("WATCHDOG_USEC") != "" {
		t.Error("programs that the daemon starts would speak for it")
	}
	if n.every != 1500*time.Millisecond {
		t.Errorf("watchdog every %v, want half of 3 s", n.every)
	}
	for _, c := range []struct {
		send func()
		want string
	}{
		{func() { n.ready("all well") }, "READY=1\nSTATUS=all well"},
		{n.reloading, "RELOADING=1\nMONOTONIC_USEC="},
		{n.watchdog, "WATCHDOG=1"},
		{n.stopping, "STOPPING=1"},
	} {
		c.send()
		b := make([]byte, 200)
		l.SetReadDeadline(time.Now().Add(10 * time.Second))
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
	n := newNotifier()
	n.ready("")
	n.reloading()
	n.close()
	if n.every != 0 {
		t.Errorf("watchdog every %v, for another process", n.every)
	}
}
