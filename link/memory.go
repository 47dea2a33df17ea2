package link

import (
	"net"
	"sync"
	"sync/atomic"
)

// DefaultCapacity is the default length of a memory device's queue, in packets: the
// transmit queue of a Linux interface.
const DefaultCapacity = 1000

// Memory is one end of a cable in memory: packets written to one end are read from the
// other, in order. It is safe for concurrent use.
type Memory struct {
	mtu     int
	in, out *queue
	closed  atomic.Bool
}

// NewPair returns the two ends of a cable. mtu is in bytes, 0 means
// DefaultMTU; capacity is how many packets wait in each direction before more
// are dropped, 0 means DefaultCapacity. Negative numbers mean the same as 0.
func NewPair(mtu, capacity int) (a, b *Memory) {
	if mtu <= 0 {
		mtu = DefaultMTU
	}
	if capacity <= 0 {
		capacity = DefaultCapacity
	}
	ab, ba := newQueue(capacity), newQueue(capacity)
	return &Memory{mtu: mtu, in: ba, out: ab}, &Memory{mtu: mtu, in: ab, out: ba}
}

// MTU returns the longest packet that may be written, in bytes.
func (m *Memory) MTU() int { return m.mtu }

// Drops returns how many of the packets written to this end were lost: too long, empty,
// no room in the queue, longer than the reader's buffer, or not read before the other end
// closed.
func (m *Memory) Drops() uint64 { return m.out.dropped() }

// Read implements the package's Read. The other end's Close does not unblock it: a cable
// without a far end is silent.
func (m *Memory) Read(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	if len(bufs) == 0 {
		return 0, nil
	}
	return m.in.read(bufs, sizes, offset)
}

// Write implements the package's Write. The bytes are copied.
func (m *Memory) Write(bufs [][]byte, offset int) (n int, err error) {
	if m.closed.Load() {
		return 0, net.ErrClosed
	}
	return m.out.write(bufs, offset, m.mtu), nil
}

// Close makes this end's Read and Write return net.ErrClosed. Packets in flight to it are
// lost. It may be called more than once.
func (m *Memory) Close() error {
	m.closed.Store(true)
	m.in.close()
	return nil
}

// queue is one direction of the cable: a bounded ring of packets.
type queue struct {
	mu    sync.Mutex
	ready sync.Cond // signalled when packets are there or closed is set
	ring  [][]byte
	head  int // index of the oldest packet
	count int
	// free holds buffers that wait for reuse, the latest on top, so that there
	// are no more buffers than the queue was ever long.
	free   [][]byte
	closed bool
	drops  uint64
}

func newQueue(capacity int) *queue {
	q := &queue{ring: make([][]byte, capacity)}
	q.ready.L = &q.mu
	return q
}

func (q *queue) write(bufs [][]byte, offset, mtu int) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range bufs {
		size := len(b) - offset
		if q.closed || size <= 0 || size > mtu || q.count == len(q.ring) {
			q.drops++
			continue
		}
		q.ring[(q.head+q.count)%len(q.ring)] = append(q.buffer(), b[offset:]...)
		q.count++
		n++
	}
	if n > 0 {
		q.ready.Signal()
	}
	return n
}

func (q *queue) read(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n == 0 {
		for q.count == 0 && !q.closed {
			q.ready.Wait()
		}
		if q.closed {
			return 0, net.ErrClosed
		}
		for q.count > 0 && n < len(bufs) {
			b := q.pop()
			if offset+len(b) > len(bufs[n]) {
				q.drops++
			} else {
				sizes[n] = copy(bufs[n][offset:], b)
				n++
			}
			q.free = append(q.free, b)
		}
	}
	if q.count > 0 {
		// One signal may stand for a whole batch: pass it on.
		q.ready.Signal()
	}
	return n, nil
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.drops += uint64(q.count)
	q.ring, q.free, q.count = nil, nil, 0
	q.ready.Broadcast()
}

func (q *queue) dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.drops
}

func (q *queue) buffer() []byte {
	last := len(q.free) - 1
	if last < 0 {
		return nil
	}
	b := q.free[last]
	q.free = q.free[:last]
	return b[:0]
}

func (q *queue) pop() []byte {
	b := q.ring[q.head]
	q.ring[q.head] = nil
	q.head = (q.head + 1) % len(q.ring)
	q.count--
	return b
}
