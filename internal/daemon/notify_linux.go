package daemon

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// notifier tells systemd how the daemon is (sd_notify(3)): a datagram of
// assignments to the socket that NOTIFY_SOCKET names. Without one it does
// nothing. Who does not listen is not waited for.
type notifier struct {
	conn  net.Conn
	every time.Duration // how often Watchdog is due; 0: never
}

// newNotifier takes what it needs out of the environment, so that programs that
// the daemon starts do not speak for it.
func newNotifier() notifier {
	var n notifier
	if name := os.Getenv("NOTIFY_SOCKET"); name != "" {
		n.conn, _ = net.Dial("unixgram", name) // a leading @ is the abstract namespace's, to Go, too
	}
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	pid := os.Getenv("WATCHDOG_PID")
	if err == nil && usec > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.every = time.Duration(usec) * time.Microsecond / 2
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		os.Unsetenv(name)
	}
	return n
}

func (n notifier) send(state string) {
	if n.conn == nil {
		return
	}
	n.conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	n.conn.Write([]byte(state))
}

func (n notifier) ready(status string) { n.send("READY=1\nSTATUS=" + status) }
func (n notifier) stopping()           { n.send("STOPPING=1") }
func (n notifier) watchdog()           { n.send("WATCHDOG=1") }

// reloading must say when, on the clock that systemd compares with.
func (n notifier) reloading() {
	if now, err := monotonicMicroseconds(); err == nil {
		n.send(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now))
	}
}

func (n notifier) close() {
	if n.conn != nil {
		n.conn.Close()
	}
}
