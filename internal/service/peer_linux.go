package service

import (
	"net"

	"golang.org/x/sys/unix"
)

// peer returns the UID of who has connected to a Unix socket; nobody if the kernel does not say.
func peer(conn net.Conn) int {
	for {
		switch c := conn.(type) {
		case *replayed:
			conn = c.Conn
			continue
		case *placed:
			conn = c.Conn
			continue
		case *net.UnixConn:
			return peerOf(c)
		}
		return nobody
	}
}

func peerOf(c *net.UnixConn) int {
	uid := nobody
	raw, err := c.SyscallConn()
	if err != nil {
		return nobody
	}
	raw.Control(func(fd uintptr) {
		if who, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid = int(who.Uid)
		}
	})
	return uid
}
