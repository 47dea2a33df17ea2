package link

import (
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// kernelQueue asks the kernel how much the queue of an interface has lost.
type kernelQueue struct {
	mu     sync.Mutex
	handle *netlink.Handle // of the interface's namespace; nil when closed
	index  int
	last   uint64
}

// open is to be called in the interface's namespace.
func (q *kernelQueue) open(name string) error {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	l, err := handle.LinkByName(name)
	if err != nil {
		handle.Close()
		return err
	}
	q.handle, q.index = handle, l.Attrs().Index
	return nil
}

// drops returns the packets lost so far; after close, or when the kernel does
// not say, what it said last.
func (q *kernelQueue) drops() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.handle == nil {
		return q.last
	}
	if l, err := q.handle.LinkByIndex(q.index); err == nil && l.Attrs().Statistics != nil {
		q.last = l.Attrs().Statistics.TxDropped
	}
	return q.last
}

func (q *kernelQueue) close() {
	q.drops()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.handle != nil {
		q.handle.Close()
		q.handle = nil
	}
}
