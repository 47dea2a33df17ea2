package link

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tunReader is a call of Read or ReadSuper in progress.
type tunReader struct {
	mu     sync.Mutex
	op     func(fd uintptr) (done bool)
	once   func(fd uintptr) (done bool) // op, but does not wait
	bufs   [][]byte
	sizes  []int
	offset int
	super  bool // the caller wants the VnetHeader
	n      int
	err    error
	hdr    [VnetHeaderLen]byte
	iov    [2]unix.Iovec
}

// Read implements the package's Read. After the first packet it takes those that are
// ready, without waiting. With TUNConfig.Offload it completes checksums, returns a
// super-segment of TCP as one long packet, and drops one of UDP, which is many datagrams.
func (q *TUNQueue) Read(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	return q.read(bufs, sizes, offset, false)
}

// ReadSuper implements the package's ReadSuper.
func (q *TUNQueue) ReadSuper(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	if offset < SuperHeadroom {
		return 0, errHeadroom
	}
	return q.read(bufs, sizes, offset, true)
}

func (q *TUNQueue) read(bufs [][]byte, sizes []int, offset int, super bool) (n int, err error) {
	if !haveRoom(bufs, offset) {
		return 0, errNoRoom
	}
	return q.readBy(q.rd.op, bufs, sizes, offset, super)
}

// readBy is read by the reader's op or once, of which the latter may find nothing.
func (q *TUNQueue) readBy(op func(uintptr) bool, bufs [][]byte, sizes []int, offset int, super bool) (n int, err error) {
	r := &q.rd
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bufs, r.sizes, r.offset, r.super, r.n, r.err = bufs, sizes, offset, super, 0, nil
	err = q.raw.Read(op)
	if err == nil {
		err = r.err
	}
	r.bufs, r.sizes, r.iov = nil, nil, [2]unix.Iovec{}
	return r.n, q.failure(err)
}

// readBatch fills buffers until there are no more packets or no more buffers.
func (q *TUNQueue) readBatch(fd uintptr) (done bool) {
	r := &q.rd
	for r.n < len(r.bufs) {
		buf := r.bufs[r.n][r.offset:]
		size, errno := r.packet(fd, buf, q.vnet)
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			return r.n > 0
		case errno != 0:
			r.err = errno
			return true
		case !r.accept(buf, size, q.vnet):
			q.drops.Add(1)
		default:
			r.sizes[r.n] = size
			r.n++
		}
	}
	return true
}

// packet reads one packet into buf and its VnetHeader into r.hdr. A packet
// longer than buf fills it.
func (r *tunReader) packet(fd uintptr, buf []byte, vnet bool) (size int, errno unix.Errno) {
	iov := r.iov[:1]
	if vnet {
		iov = r.iov[:2]
		iov[0] = bytesOf(r.hdr[:])
	}
	iov[len(iov)-1] = bytesOf(buf)
	if size, errno = callNow(unix.SYS_READV, fd, unsafe.Pointer(&iov[0]), len(iov), 0); errno != 0 {
		return 0, errno
	}
	if vnet {
		size -= VnetHeaderLen
	}
	return size, 0
}

// accept hands the packet over as the caller wants it, or refuses it.
func (r *tunReader) accept(buf []byte, size int, vnet bool) bool {
	if size <= 0 || truncated(buf, size) {
		return false
	}
	var h VnetHeader
	if vnet {
		h = ParseVnetHeader(&r.hdr)
	}
	return handOver(h, r.bufs[r.n], r.offset, size, r.super)
}
