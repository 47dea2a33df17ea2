package clock

import (
	"sync/atomic"
	"time"

	"weft/internal/timerq"
)

// Never is the time of what is not due: Alarm.Set with it takes the call back.
const Never = timerq.Never

// LeastPause is how soon a timer may expire in real time: sooner, it is late anyway.
const LeastPause = 50 * time.Microsecond

// Alarm calls a function at a time that changes often. Set and Rang are called under
// their owner's lock. Kick may be called by anybody, with any lock held.
type Alarm struct {
	clock  Clock
	timer  Timer
	least  time.Duration
	at     time.Duration // for when the timer is set; Never: it is not
	kicked atomic.Bool
}

// NewAlarm returns an Alarm that is not set. f must call Rang first, under the owner's
// lock. It is called in a goroutine of its own in real time, so a call may come late, even
// after Set(Never). least is the shortest time from Set to the call.
func NewAlarm(c Clock, least time.Duration, f func()) *Alarm {
	a := &Alarm{clock: c, least: least, at: Never, timer: c.AfterFunc(time.Hour, f)}
	a.timer.Stop()
	return a
}

// Set has the function called at a time of the clock, and only then. If it is set for that
// time already, it costs nothing: who calls Set again and again does not put off the call.
func (a *Alarm) Set(at time.Duration) {
	if at == a.at {
		return
	}
	if a.at = at; at == Never {
		a.timer.Stop()
	} else {
		a.timer.Reset(max(at-a.clock.Now(), a.least))
	}
	if a.kicked.Load() { // perhaps before the timer was set
		a.timer.Reset(0)
	}
}

// Kick has the function called at once.
func (a *Alarm) Kick() {
	if !a.kicked.Swap(true) {
		a.timer.Reset(0)
	}
}

// Rang says that the function has been called. It is to be set again.
func (a *Alarm) Rang() {
	a.at = Never
	a.kicked.Store(false)
}
