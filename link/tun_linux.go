package link

import (
	"errors"
	"fmt"
	"sync/atomic"

	"weft/internal/shortage"
)

// TUN is a TUN interface. As a device it is its first queue.
type TUN struct {
	name     string
	mtu      int
	queues   []*TUNQueue
	offloads Offloads
	super    super
	queue    kernelQueue
	closed   atomic.Bool
}

// OpenTUN creates an interface in the network namespace of the calling thread
// and brings it up. It goes away with Close or with the process. The kernel
// must forward, or nothing that weft writes would leave the machine.
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
	for _, f := range o.files {
		q, err := newTUNQueue(t, f, o.vnet)
		if err != nil {
			o.close()
			return nil, fmt.Errorf("tun %s: %w", o.name, err)
		}
		t.queues = append(t.queues, q)
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

// Name returns the interface's name.
func (t *TUN) Name() string { return t.name }

// MTU returns the fabric's MTU in bytes.
func (t *TUN) MTU() int { return t.mtu }

// Queues returns the number of queues.
func (t *TUN) Queues() int { return len(t.queues) }

// Queue returns a queue, 0 ≤ i < Queues(), a device of its own.
//
// Which queue a flow is read from is the kernel's choice (tun_select_queue in
// drivers/net/tun.c): the queue where a packet of the same flow, in either
// direction, was last written, or, if none was in the last seconds, a hash of
// the five-tuple. So a flow stays on one queue, and in order, as long as its packets are
// written to the queue from which the opposite direction is read.
// Who writes them to another moves the flow there, and what waits in the
// old queue may then be read later than what follows it.
func (t *TUN) Queue(i int) *TUNQueue { return t.queues[i] }

// Offloads implements the package's Offloads.
func (t *TUN) Offloads() Offloads { return t.super.fill(t.offloads) }

// MaxSuper implements the package's MaxSuper.
func (t *TUN) MaxSuper() int { return int(t.super.max.Load()) }

// Drops returns how many packets were lost: in the kernel's queues, since nobody
// read them in time, and what the queues count. It asks the kernel: not for
// every packet.
func (t *TUN) Drops() uint64 {
	sum := t.queue.drops()
	for _, q := range t.queues {
		sum += q.Drops()
	}
	return sum
}

// Read implements the package's Read, on queue 0.
func (t *TUN) Read(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	return t.queues[0].Read(bufs, sizes, offset)
}

// Write implements the package's Write, on queue 0.
func (t *TUN) Write(bufs [][]byte, offset int) (n int, err error) {
	return t.queues[0].Write(bufs, offset)
}

// ReadSuper implements the package's ReadSuper, on queue 0.
func (t *TUN) ReadSuper(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	return t.queues[0].ReadSuper(bufs, sizes, offset)
}

// WriteSuper implements the package's WriteSuper, on queue 0.
func (t *TUN) WriteSuper(bufs [][]byte, offset int) (n int, err error) {
	return t.queues[0].WriteSuper(bufs, offset)
}

// WriteParts implements the package's WriteParts, on queue 0.
func (t *TUN) WriteParts(parts [][]byte) error { return t.queues[0].WriteParts(parts) }

// Close removes the interface and unblocks every Read. It may be called more
// than once.
func (t *TUN) Close() error {
	if t.closed.Swap(true) {
		return nil
	}
	t.queue.close()
	var errs []error
	for _, q := range t.queues {
		errs = append(errs, q.Close())
	}
	return errors.Join(errs...)
}
