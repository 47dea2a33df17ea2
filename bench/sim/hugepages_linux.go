package sim

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// region is by how much the heap grows.
const region = 4 << 20

// adviseHugePages asks for huge pages for the part of the heap in which p lies: with thousands of
// hosts nearly every access is to another page. It is a hint, which may come to nothing.
func adviseHugePages(p unsafe.Pointer) {
	unix.Syscall(unix.SYS_MADVISE, uintptr(p)&^(region-1), region, unix.MADV_HUGEPAGE)
}
