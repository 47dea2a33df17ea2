package service

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Notifier tells systemd how a daemon is, by the protocol of sd_notify(3): datagrams of
// assignments to the socket that NOTIFY_SOCKET names. Without that variable it does
// nothing, and neither does the zero value. It does not wait for a reader and reports no
// failure, because a daemon goes on all the same. Its methods are safe for concurrent use,
// except Close.
type Notifier struct {
	conn  net.Conn
	every time.Duration
}

// NewNotifier removes its variables from the environment, so that programs that the daemon
// starts do not speak for it. A daemon that begins anew by execve(2) calls it only in the
// last program.
func NewNotifier() Notifier {
	var n Notifier
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

// Every returns how often Watchdog is due: half of the time after which systemd restarts
// the daemon. 0 means never.
func (n Notifier) Every() time.Duration { return n.every }

// Due returns a channel that receives whenever Watchdog is due, and a function that stops
// it. If Watchdog is never due, the channel never receives.
func (n Notifier) Due() (due <-chan time.Time, stop func()) {
	if n.every <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(n.every)
	return t.C, t.Stop
}

// Ready says that the daemon is at work, and in a line what it does. Call it after the
// start and after Reloading.
func (n Notifier) Ready(status string) { n.send("READY=1\nSTATUS=" + status) }

// Stopping says that the daemon ends.
func (n Notifier) Stopping() { n.send("STOPPING=1") }

// Watchdog says that the daemon still works.
func (n Notifier) Watchdog() { n.send("WATCHDOG=1") }

// Reloading says that the configuration is being read again. The message has the time, by
// the clock that systemd compares with.
func (n Notifier) Reloading() {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err == nil {
		n.send(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Nano()/1000))
	}
}

func (n Notifier) send(state string) {
	if n.conn == nil {
		return
	}
	n.conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	n.conn.Write([]byte(state))
}

// Close closes the socket.
func (n Notifier) Close() {
	if n.conn != nil {
		n.conn.Close()
	}
}
