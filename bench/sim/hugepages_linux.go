package sim

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// arena is what the runtime asks the kernel for at once.
const arena = 64 << 20

// advised is the arena that was advised last.
var advised atomic.Uintptr

// adviseHugePages asks for huge pages for the part of the heap in which p lies: with thousands of
// hosts nearly every access is to another page. It is a hint, which may come to nothing.
func adviseHugePages(p unsafe.Pointer) {
	from := uintptr(p) &^ (arena - 1)
	if advised.Swap(from) != from {
		unix.Syscall(unix.SYS_MADVISE, from, arena, unix.MADV_HUGEPAGE)
	}
}
