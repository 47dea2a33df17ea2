package link

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tunWriter is a call of Write, WriteSuper or WriteParts in progress.
type tunWriter struct {
	mu        sync.Mutex
	batch     func(fd uintptr) (done bool)
	scattered func(fd uintptr) (done bool)
	// writev is the system call; tests put others in its place.
	writev func(fd uintptr, iov []unix.Iovec) unix.Errno
	bufs   [][]byte
	offset int
	super  bool // packets are preceded by a VnetHeader
	n      int
	iov    []unix.Iovec
	hdr    [VnetHeaderLen]byte
	whole  []byte // the packet of WriteParts without vnet, at most MaxSuperLen
}

// Write implements the package's Write, a system call per packet.
func (q *TUNQueue) Write(bufs [][]byte, offset int) (n int, err error) {
	return q.write(bufs, offset, false)
}

// WriteSuper implements the package's WriteSuper, a system call per packet: a
// TUN takes no more at a time.
func (q *TUNQueue) WriteSuper(bufs [][]byte, offset int) (n int, err error) {
	if offset < SuperHeadroom {
		return 0, errHeadroom
	}
	return q.write(bufs, offset, true)
}

func (q *TUNQueue) write(bufs [][]byte, offset int, super bool) (n int, err error) {
	w := &q.wr
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bufs, w.offset, w.super, w.n = bufs, offset, super, 0
	err = q.raw.Write(w.batch)
	w.release()
	q.drops.Add(uint64(len(bufs) - w.n))
	return w.n, q.closedOr(err)
}

// WriteParts implements the package's WriteParts, by one system call.
func (q *TUNQueue) WriteParts(parts [][]byte) error {
	if !validParts(parts) {
		return errParts
	}
	w := &q.wr
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bufs, w.n = parts, 0
	err := q.raw.Write(w.scattered)
	w.release()
	q.drops.Add(uint64(1 - w.n))
	return q.closedOr(err)
}

// release drops what belongs to the caller.
func (w *tunWriter) release() {
	w.bufs = nil
	clear(w.iov)
}

func (q *TUNQueue) writeBatch(fd uintptr) (done bool) {
	w := &q.wr
	for _, b := range w.bufs {
		if len(b) <= w.offset {
			continue
		}
		var h VnetHeader
		if w.super {
			h = ParseVnetHeader((*[VnetHeaderLen]byte)(b[w.offset-VnetHeaderLen:]))
		}
		packet := b[w.offset:]
		if h.Check(len(packet)) != nil {
			continue
		}
		w.iov = w.iov[:0]
		if q.vnet {
			h.Put(&w.hdr)
			w.iov = append(w.iov, bytesOf(w.hdr[:]))
		} else if !w.inSoftware(h, packet) {
			continue
		}
		w.iov = append(w.iov, bytesOf(packet))
		q.submit(fd, h)
	}
	return true
}

func (q *TUNQueue) writeScattered(fd uintptr) (done bool) {
	w := &q.wr
	h := ParseVnetHeader((*[VnetHeaderLen]byte)(w.bufs[0]))
	size := partsLen(w.bufs) - VnetHeaderLen
	if size > MaxSuperLen || h.Check(size) != nil {
		return true
	}
	w.iov = w.iov[:0]
	if q.vnet {
		for _, b := range w.bufs {
			if len(b) > 0 {
				w.iov = append(w.iov, bytesOf(b))
			}
		}
		q.submit(fd, h)
		return true
	}
	w.whole = w.whole[:0]
	for _, b := range w.bufs {
		w.whole = append(w.whole, b...)
	}
	if packet := w.whole[VnetHeaderLen:]; w.inSoftware(h, packet) {
		w.iov = append(w.iov, bytesOf(packet))
		q.submit(fd, h)
	}
	return true
}

// inSoftware does what h asks for where the kernel takes no header, and returns
// false if that cannot be done: nobody cuts super-segments here.
func (w *tunWriter) inSoftware(h VnetHeader, packet []byte) bool {
	if h.GSO() {
		return false
	}
	h.complete(packet)
	return true
}

// submit writes the packet in w.iov and counts what became of it.
func (q *TUNQueue) submit(fd uintptr, h VnetHeader) {
	w := &q.wr
	for {
		switch errno := w.writev(fd, w.iov); errno {
		case 0:
			w.n++
		case unix.EINTR:
			continue
		case unix.EINVAL, unix.EOPNOTSUPP:
			// Not EIO: that is an interface that is down (tun_get_user).
			if h.GSO() {
				q.tun.super.refuse(errno)
			}
		}
		return
	}
}

func writev(fd uintptr, iov []unix.Iovec) unix.Errno {
	_, errno := callNow(unix.SYS_WRITEV, fd, unsafe.Pointer(&iov[0]), len(iov), 0)
	return errno
}
