package link

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// callNow makes a system call on a descriptor that does not wait: this must not, or be told by
// flags not to. The runtime does not know of the call. It takes its processor away from a
// call that lasts longer than 20 µs, wakes another thread for it, and has the first one wait
// for it afterwards (sysmon, in runtime/proc.go). A call that leads 64 KB through the kernel
// lasts longer, and there are tens of thousands of these a second. The price is that the
// garbage collector waits for the end of a call.
func callNow(trap, fd uintptr, what unsafe.Pointer, count, flags int) (n int, errno unix.Errno) {
	got, _, errno := unix.RawSyscall6(trap, fd, uintptr(what), uintptr(count), uintptr(flags), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(got), 0
}
