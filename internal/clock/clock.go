// Package clock is the time that hosts live in: the real one, or a simulated one
// that a test or a simulator drives.
package clock

import "time"

// Clock tells the time and calls functions later. It must be safe for concurrent
// use, unless whoever uses it says otherwise.
type Clock interface {
	// Now counts from any fixed point and does not run backwards.
	Now() time.Duration
	// AfterFunc has f called once d has passed.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a call to come, as *time.Timer is.
type Timer interface {
	// Stop takes the call back; it is false if there was none to come.
	Stop() bool
	// Reset has the function called once d has passed from now, and only then; it is
	// false if there was no call to come.
	Reset(d time.Duration) bool
}

// real counts from when it was made.
type real struct{ epoch time.Time }

// Real returns the real time, counted from now. It does not follow the time of day
// when somebody sets that.
func Real() Clock { return real{time.Now()} }

// Or returns c, or the real time if c is nil.
func Or(c Clock) Clock {
	if c == nil {
		return Real()
	}
	return c
}

func (c real) Now() time.Duration { return time.Since(c.epoch) }

func (c real) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
