package dataplane

import (
	"sync/atomic"

	"weft/link"
)

// Outbox collects the packets that a host sends on its own account, such as probes, and
// writes them many at a time. Its owner guards it; Drops may be called at any time.
type Outbox struct {
	write func(bufs [][]byte) int // takes packets behind link.SuperHeadroom, returns how many
	bufs  [][]byte                // one for each packet of a batch
	batch [][]byte
	drops atomic.Uint64
}

// newOutbox returns one for so many packets at a time, of so many bytes.
func newOutbox(packets, size int, write func(bufs [][]byte) int) *Outbox {
	b := &Outbox{write: write, bufs: make([][]byte, packets), batch: make([][]byte, 0, packets)}
	for i := range b.bufs {
		b.bufs[i] = make([]byte, link.SuperHeadroom, link.SuperHeadroom+size)
	}
	return b
}

// NewOutbox returns one whose packets, at most so many at a time and of so many bytes, go
// to the device of an egress. It takes the egress's lock to write.
func (e *Egress) NewOutbox(packets, size int) *Outbox {
	return newOutbox(packets, size, func(bufs [][]byte) int {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.outlet.write(bufs)
	})
}

// Add copies a packet, and writes all when there is no room for another.
func (b *Outbox) Add(packet []byte) {
	b.batch = append(b.batch, append(b.bufs[len(b.batch)], packet...))
	if len(b.batch) == cap(b.batch) {
		b.Flush()
	}
}

// Flush writes what was added.
func (b *Outbox) Flush() {
	if len(b.batch) == 0 {
		return
	}
	if n := len(b.batch) - b.write(b.batch); n > 0 {
		b.drops.Add(uint64(n))
	}
	b.batch = b.batch[:0]
}

// Drops counts the packets that the device did not take.
func (b *Outbox) Drops() uint64 { return b.drops.Load() }
