package stack

import "time"

// Clock is the time that a Host lives in; Config.Clock says what one that is
// not the real time is for. It must be safe for concurrent use.
type Clock interface {
	// Now counts from any fixed point and does not run backwards.
	Now() time.Duration
	// AfterFunc has f called once d has passed.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a call to come, as *time.Timer is.
type Timer interface {
	// Stop takes the call back; false if there is none to come.
	Stop() bool
	// Reset has the function called once d has passed from now, and only then;
	// false if there was no call to come.
	Reset(d time.Duration) bool
}

// realClock counts from when it was made.
type realClock struct{ epoch time.Time }

func newRealClock() realClock { return realClock{time.Now()} }

func (c realClock) Now() time.Duration { return time.Since(c.epoch) }

func (c realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
