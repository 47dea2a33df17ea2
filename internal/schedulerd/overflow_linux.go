package schedulerd

import (
	"net"

	"weft/internal/kernel"
)

// overflowed is how many messages the kernel has thrown away at a socket, as they came faster than
// they were read, modulo 2^32.
func overflowed(c *net.UDPConn) (n uint64) {
	raw, err := c.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { n = uint64(kernel.SocketDrops(int(fd))) }) // closed: 0
	}
	return n
}
