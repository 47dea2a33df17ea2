package world

import (
	"sync"
	"sync/atomic"
	"time"

	"weft/internal/timerq"
	"weft/stack"
)

// clock is the time of a World and what is to be done in it. It is safe for
// concurrent use, as stack.Clock asks.
type clock struct {
	now atomic.Int64

	mu     sync.Mutex
	timers timerq.Queue[*timer]
}

var _ stack.Clock = (*clock)(nil)

func (c *clock) Now() time.Duration { return time.Duration(c.now.Load()) }

func (c *clock) AfterFunc(d time.Duration, f func()) stack.Timer {
	t := &timer{clock: c, f: f, place: timerq.Nowhere}
	t.Reset(d)
	return t
}

// at has f called at a time, or now if that is past.
func (c *clock) at(at time.Duration, f func()) { c.AfterFunc(at-c.Now(), f) }

// next returns when the next timer expires, false if there is none.
func (c *clock) next() (at time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timers.Next(), c.timers.Len() > 0
}

// fire advances to the next timer, which there must be, and calls its function.
func (c *clock) fire() {
	c.mu.Lock()
	c.now.Store(int64(c.timers.Next()))
	t := c.timers.Pop()
	c.mu.Unlock()
	t.f()
}

// advance moves the time on; no timer may expire before.
func (c *clock) advance(to time.Duration) { c.now.Store(int64(to)) }

// timer is one of a clock's.
type timer struct {
	clock *clock
	f     func()
	place int32 // in the clock's queue
}

func placed(t *timer, place int32) { t.place = place }

func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	set := t.place != timerq.Nowhere
	t.clock.timers.Remove(t.place)
	return set
}

func (t *timer) Reset(d time.Duration) bool {
	c := t.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	set := t.place != timerq.Nowhere
	c.timers.Moved = placed // here, so that the zero clock is ready
	c.timers.Set(t, t.place, c.Now()+max(d, 0))
	return set
}
