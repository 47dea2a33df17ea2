package world

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"

	"weft/stack"
)

// clock is the time of a World and what is to be done in it. It is safe for
// concurrent use, as stack.Clock asks.
type clock struct {
	now atomic.Int64

	mu     sync.Mutex
	timers timerHeap
	seq    uint64 // of the latest timer set
}

var _ stack.Clock = (*clock)(nil)

func (c *clock) Now() time.Duration { return time.Duration(c.now.Load()) }

func (c *clock) AfterFunc(d time.Duration, f func()) stack.Timer {
	t := &timer{clock: c, f: f, index: -1}
	t.Reset(d)
	return t
}

// at has f called at a time, or now if that is past.
func (c *clock) at(at time.Duration, f func()) { c.AfterFunc(at-c.Now(), f) }

// next returns when the next timer expires, false if there is none.
func (c *clock) next() (at time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 {
		return 0, false
	}
	return c.timers[0].at, true
}

// fire advances to the next timer, which there must be, and calls its function.
func (c *clock) fire() {
	c.mu.Lock()
	t := heap.Pop(&c.timers).(*timer)
	c.now.Store(int64(t.at))
	c.mu.Unlock()
	t.f()
}

// advance moves the time on; no timer may expire before.
func (c *clock) advance(to time.Duration) { c.now.Store(int64(to)) }

// timer is in the heap at index, or nowhere if that is negative.
type timer struct {
	clock *clock
	f     func()
	at    time.Duration
	seq   uint64
	index int
}

func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.index < 0 {
		return false
	}
	heap.Remove(&t.clock.timers, t.index)
	return true
}

func (t *timer) Reset(d time.Duration) bool {
	c := t.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	t.at, t.seq = c.Now()+max(d, 0), c.seq
	if t.index >= 0 {
		heap.Fix(&c.timers, t.index)
		return true
	}
	heap.Push(&c.timers, t)
	return false
}

// timerHeap has the earliest timer first, of those the one that was set first.
type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.index = -1
	return t
}
