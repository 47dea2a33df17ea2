package wire

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// turn is how many messages of a port are taken before the others have theirs.
const turn = 16

// batch is what recvmmsg(2) needs for the messages of a turn. All ports share
// one: their turns come one after the other.
type batch struct {
	msgs    [turn]unix.Mmsghdr
	iovecs  [turn]unix.Iovec
	buffers [turn][bufferBytes]byte
	names   [turn]unix.RawSockaddrInet4
}

func newBatch() *batch {
	b := new(batch)
	for i := range b.msgs {
		b.iovecs[i].Base = &b.buffers[i][0]
		b.iovecs[i].SetLen(bufferBytes)
		b.msgs[i].Hdr.Iov = &b.iovecs[i]
		b.msgs[i].Hdr.SetIovlen(1)
		b.msgs[i].Hdr.Name = (*byte)(unsafe.Pointer(&b.names[i]))
		b.msgs[i].Hdr.Namelen = unix.SizeofSockaddrInet4
	}
	return b
}

// receive takes the messages of a turn, and returns how many. Errors are those of
// packets sent before, which are of no interest here, and clear themselves.
func (b *batch) receive(s *socket) int {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&b.msgs[0])), turn, unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			return int(n)
		case unix.EINTR:
		default:
			return 0
		}
	}
}

// message returns the i-th message, valid until the next receive.
func (b *batch) message(i int) []byte { return b.buffers[i][:b.msgs[i].Len] }

// source returns whence the i-th message came, as its IP header says.
func (b *batch) source(i int) netip.Addr { return netip.AddrFrom4(b.names[i].Addr) }
