package dataplanetest

import (
	"slices"
	"sync"
	"time"

	"weft/internal/clock"
)

// HandClock is moved by hand. The zero value is ready.
type HandClock struct {
	mu     sync.Mutex
	now    time.Duration
	timers []*handTimer // by time, then in the order of setting
}

type handTimer struct {
	clock *HandClock
	at    time.Duration
	f     func()
}

// Now implements clock.Clock.
func (c *HandClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc implements clock.Clock.
func (c *HandClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := &handTimer{clock: c, f: f}
	t.Reset(d)
	return t
}

func (t *handTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	i := slices.Index(t.clock.timers, t)
	if i >= 0 {
		t.clock.timers = slices.Delete(t.clock.timers, i, i+1)
	}
	return i >= 0
}

func (t *handTimer) Reset(d time.Duration) bool {
	was := t.Stop()
	c := t.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	t.at = c.now + max(d, 0)
	i := len(c.timers)
	for i > 0 && c.timers[i-1].at > t.at {
		i--
	}
	c.timers = slices.Insert(c.timers, i, t)
	return was
}

// Run moves the clock forward and calls what is due.
func (c *HandClock) Run(d time.Duration) {
	until := c.Now() + d
	for {
		c.mu.Lock()
		if len(c.timers) == 0 || c.timers[0].at > until {
			c.now = until
			c.mu.Unlock()
			return
		}
		t := c.timers[0]
		c.timers = c.timers[1:]
		c.now = t.at
		c.mu.Unlock()
		t.f()
	}
}

// StillClock is a clock that a test sets; its timers never expire.
type StillClock struct{ Time time.Duration }

type noTimer struct{}

// Now implements clock.Clock.
func (c *StillClock) Now() time.Duration { return c.Time }

// AfterFunc implements clock.Clock.
func (c *StillClock) AfterFunc(d time.Duration, f func()) clock.Timer { return noTimer{} }

func (noTimer) Stop() bool               { return false }
func (noTimer) Reset(time.Duration) bool { return false }
