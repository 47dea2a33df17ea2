package socket

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// status reads whose a block is. The kernel writes it last.
func status(h *unix.TpacketBlockDesc) uint32 {
	v := (*unix.TpacketHdrV1)(unsafe.Pointer(&h.Hdr[0]))
	return atomic.LoadUint32(&v.Block_status)
}

// release gives a block back to the kernel.
func release(h *unix.TpacketBlockDesc) {
	v := (*unix.TpacketHdrV1)(unsafe.Pointer(&h.Hdr[0]))
	atomic.StoreUint32(&v.Block_status, unix.TP_STATUS_KERNEL)
}
