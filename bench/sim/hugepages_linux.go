package sim

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// region is by how much the heap grows.
const region = 4 << 20

// advised is the region that was advised last.
var advised atomic.Uintptr

// adviseHugePages asks for huge pages for the part of the heap in which p lies: with thousands of
// hosts nearly every access is to another page. It is a hint, which may come to nothing.
func adviseHugePages(p unsafe.Pointer) {
	from := uintptr(p) &^ (region - 1)
	if advised.Swap(from) != from {
		unix.Syscall(unix.SYS_MADVISE, from, region, unix.MADV_HUGEPAGE)
	}
}
