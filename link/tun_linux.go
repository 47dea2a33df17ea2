package link

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"weft/internal/shortage"
)

// TUN is a TUN interface with all of its queues. It is safe for concurrent use: reads
// take turns, and so do writes.
type TUN struct {
	name     string
	mtu      int
	queues   []*TUNQueue
	writer   *TUNQueue // what Write writes to: the queue, or where there are several, one that has no part in their flows
	any      *tunAny   // nil with one queue
	offloads Offloads
	super    super
	queue    kernelQueue
	closed   atomic.Bool
}

// OpenTUN creates an interface in the network namespace of the calling thread and brings
// it up. The interface goes away with Close or with the process. The kernel must forward,
// otherwise no packet that weft writes would leave the machine.
func OpenTUN(c TUNConfig) (*TUN, error) {
	t, err := openTUNBy(openNetlink, c)
	return t, shortage.Explain(err)
}

func openTUNBy(fast opener, c TUNConfig) (*TUN, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	o, err := openQueues(c, fast)
	if err != nil {
		return nil, err
	}
	t := &TUN{name: o.name, mtu: c.MTU, offloads: o.offloads}
	if o.vnet {
		t.super.max.Store(MaxSuperLen)
	}
	if o.offloads.Fallback != "" {
		t.super.note(o.offloads.Fallback)
	}
	if err := t.adopt(o); err != nil {
		o.close()
		return nil, fmt.Errorf("tun %s: %w", o.name, err)
	}
	err = configure(o.name, c)
	if err == nil {
		err = t.queue.open(o.name)
	}
	if err != nil {
		t.Close()
		return nil, fmt.Errorf("tun %s: %w", o.name, err)
	}
	return t, nil
}

// adopt makes queues of the files. On error they are still o's to close.
func (t *TUN) adopt(o *opened) (err error) {
	for _, f := range o.files {
		q, err := newTUNQueue(t, f, o.vnet)
		if err != nil {
			return err
		}
		t.queues = append(t.queues, q)
	}
	t.writer = t.queues[0]
	if o.writer == nil {
		return nil
	}
	if t.writer, err = newTUNQueue(t, o.writer, o.vnet); err != nil {
		return err
	}
	t.any, err = newTUNAny(t.queues)
	return err
}

// Name returns the interface's name.
func (t *TUN) Name() string { return t.name }

// MTU returns the fabric's MTU in bytes.
func (t *TUN) MTU() int { return t.mtu }

// Queues returns the number of queues.
func (t *TUN) Queues() int { return len(t.queues) }

// Queue returns queue i, 0 ≤ i < Queues(), as a device of its own.
//
// The kernel chooses the queue of a flow (tun_select_queue in drivers/net/tun.c): the
// queue where a packet of the same flow, in either direction, was last written. If none
// was written in the last seconds, it uses a hash of the five-tuple. So a flow stays on
// one queue, and in order, as long as its packets are written by the TUN's own methods,
// or to the queue from which the opposite direction is read. A write to another queue
// moves the flow there. Packets that wait in the old queue may then be read after later
// ones.
func (t *TUN) Queue(i int) *TUNQueue { return t.queues[i] }

// Offloads implements the package's Offloads.
func (t *TUN) Offloads() Offloads { return t.super.fill(t.offloads) }

// MaxSuper implements the package's MaxSuper.
func (t *TUN) MaxSuper() int { return int(t.super.max.Load()) }

// Drops returns how many packets were lost, because nobody read them from the kernel's
// queues in time, or in the queues here. It asks the kernel, so do not call it for every
// packet.
func (t *TUN) Drops() uint64 {
	sum := t.queue.drops()
	for _, q := range t.all() {
		sum += q.Drops()
	}
	return sum
}

// all are the queues, that which is only written to included.
func (t *TUN) all() []*TUNQueue {
	if t.any == nil {
		return t.queues
	}
	return append(slices.Clip(t.queues), t.writer)
}

// Read implements the package's Read, on all queues.
func (t *TUN) Read(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	if t.any != nil {
		return t.any.read(bufs, sizes, offset, false)
	}
	return t.queues[0].Read(bufs, sizes, offset)
}

// Write implements the package's Write.
func (t *TUN) Write(bufs [][]byte, offset int) (n int, err error) {
	return t.writer.Write(bufs, offset)
}

// ReadSuper implements the package's ReadSuper, on all queues.
func (t *TUN) ReadSuper(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	if t.any != nil {
		if offset < SuperHeadroom {
			return 0, errHeadroom
		}
		return t.any.read(bufs, sizes, offset, true)
	}
	return t.queues[0].ReadSuper(bufs, sizes, offset)
}

// WriteSuper implements the package's WriteSuper.
func (t *TUN) WriteSuper(bufs [][]byte, offset int) (n int, err error) {
	return t.writer.WriteSuper(bufs, offset)
}

// WriteParts implements the package's WriteParts.
func (t *TUN) WriteParts(parts [][]byte) error { return t.writer.WriteParts(parts) }

// SetReadDeadline sets the deadline of all queues.
func (t *TUN) SetReadDeadline(at time.Time) error {
	if t.any != nil {
		return t.any.file.SetReadDeadline(at)
	}
	for _, q := range t.queues {
		if err := q.SetReadDeadline(at); err != nil {
			return err
		}
	}
	return nil
}

// Close removes the interface and unblocks every Read. It may be called more
// than once.
func (t *TUN) Close() error {
	if t.closed.Swap(true) {
		return nil
	}
	t.queue.close()
	var errs []error
	if t.any != nil {
		errs = append(errs, t.any.close())
	}
	for _, q := range t.all() {
		errs = append(errs, q.Close())
	}
	return errors.Join(errs...)
}
