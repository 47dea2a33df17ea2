package kernel

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// SocketDrops is how many packets the kernel has thrown away at a socket that had no room, modulo
// 2^32: SK_MEMINFO_DROPS of sock_diag(7). It is 0 if the kernel does not say.
func SocketDrops(fd int) uint32 {
	var info [9]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return info[8]
}
