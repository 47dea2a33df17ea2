//go:build !linux

package schedulerd

import "net"

// overflowed is not known: only Linux says.
func overflowed(*net.UDPConn) uint64 { return 0 }
