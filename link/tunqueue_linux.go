package link

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// TUNQueue is one queue of a TUN interface. It is safe for concurrent use: reads take
// turns, and so do writes.
type TUNQueue struct {
	tun    *TUN
	file   *os.File
	raw    syscall.RawConn
	vnet   bool // packets are preceded by a VnetHeader
	rd     tunReader
	wr     tunWriter
	drops  atomic.Uint64
	closed atomic.Bool
}

func newTUNQueue(t *TUN, file *os.File, vnet bool) (*TUNQueue, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	q := &TUNQueue{tun: t, file: file, raw: raw, vnet: vnet}
	// Made here and not in each call, where they would be allocated.
	q.rd.op = q.readBatch
	q.rd.once = func(fd uintptr) bool { q.readBatch(fd); return true }
	q.wr.batch, q.wr.scattered, q.wr.writev = q.writeBatch, q.writeScattered, writev
	return q, nil
}

// MTU returns the fabric's MTU in bytes.
func (q *TUNQueue) MTU() int { return q.tun.mtu }

// MaxSuper implements the package's MaxSuper; all queues have the same.
func (q *TUNQueue) MaxSuper() int { return q.tun.MaxSuper() }

// Offloads implements the package's Offloads; all queues have the same.
func (q *TUNQueue) Offloads() Offloads { return q.tun.Offloads() }

// Drops returns how many packets were lost here: refused by the kernel, too long for the
// reader's buffer, or malformed.
func (q *TUNQueue) Drops() uint64 { return q.drops.Load() }

// SetReadDeadline makes a Read that waits at that time, or begins later, return
// os.ErrDeadlineExceeded. The zero time means never.
func (q *TUNQueue) SetReadDeadline(t time.Time) error { return q.file.SetReadDeadline(t) }

// Close gives the queue back and unblocks Read. Its flows move to the other queues.
// TUN.Close must still be called. Close may be called more than once.
func (q *TUNQueue) Close() error {
	if q.closed.Swap(true) {
		return nil
	}
	if err := q.file.Close(); err != nil {
		return fmt.Errorf("tun %s: %w", q.tun.name, err)
	}
	return nil
}

// closedOr is net.ErrClosed in place of whatever else Close has caused.
func (q *TUNQueue) closedOr(err error) error {
	if err != nil && q.closed.Load() {
		return net.ErrClosed
	}
	return err
}

// failure is closedOr, and errGone if the interface has been removed.
func (q *TUNQueue) failure(err error) error {
	if err == nil || q.closed.Load() {
		return q.closedOr(err)
	}
	var errno error
	// The runtime may have said only that the file cannot be waited for. Writing
	// nothing does nothing, but a queue without an interface says so.
	_ = q.raw.Control(func(fd uintptr) { _, errno = unix.Write(int(fd), nil) })
	if errors.Is(errno, unix.EBADFD) {
		return errGone
	}
	return q.closedOr(err)
}

// bytesOf returns an iovec of b, which must not be empty.
func bytesOf(b []byte) unix.Iovec {
	v := unix.Iovec{Base: &b[0]}
	v.SetLen(len(b))
	return v
}
