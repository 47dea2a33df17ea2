package service

import (
	"bytes"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// heldBehind returns the process that listens at the other end of a Unix socket if it is
// stopped, as by SIGSTOP; 0 if it runs, or the kernel does not say.
func heldBehind(conn net.Conn) (pid int) {
	if pid = processBehind(conn); pid == 0 || !isHeld(pid) {
		return 0
	}
	return pid
}

// processBehind returns the process that listens at the other end of a Unix socket, 0 if the
// kernel does not say.
func processBehind(conn net.Conn) (pid int) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	raw.Control(func(fd uintptr) {
		if who, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(who.Pid)
		}
	})
	return pid
}

// isHeld reports whether a process is stopped. One that a debugger holds (state t) is not: no signal
// has it go on.
func isHeld(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	return stoppedState(text)
}

// stoppedState reports whether /proc/PID/stat has the state T.
func stoppedState(stat []byte) bool {
	_, after, ok := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") ")) // the name may have any letter
	return ok && len(after) > 0 && after[0] == 'T'
}
