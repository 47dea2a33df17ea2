package clock_test

import (
	"testing"
	"time"

	"weft/internal/clock"
	"weft/internal/dataplane/dataplanetest"
)

// ringing is an Alarm that notes when it rings, and is set again for next.
type ringing struct {
	dataplanetest.HandClock
	alarm *clock.Alarm
	rang  []time.Duration
	next  time.Duration
}

func newRinging(least time.Duration) *ringing {
	r := &ringing{next: clock.Never}
	r.alarm = clock.NewAlarm(&r.HandClock, least, func() {
		r.alarm.Rang()
		r.rang = append(r.rang, r.Now())
		r.alarm.Set(r.next)
	})
	return r
}

func (r *ringing) want(t *testing.T, at ...time.Duration) {
	t.Helper()
	if len(r.rang) != len(at) {
		t.Fatalf("rang at %v, want %v", r.rang, at)
	}
	for i := range at {
		if r.rang[i] != at[i] {
			t.Fatalf("rang at %v, want %v", r.rang, at)
		}
	}
	r.rang = nil
}

func TestAlarm_ringsWhenSet(t *testing.T) {
	r := newRinging(10)
	r.Run(2 * time.Hour)
	r.want(t) // never set
	begin := r.Now()
	r.alarm.Set(begin + 500)
	r.alarm.Set(begin + 300)
	r.Run(1000)
	r.want(t, begin+300)
	r.alarm.Set(begin) // long ago
	r.Run(100)
	r.want(t, begin+1010)
	r.alarm.Set(r.Now() + 50)
	r.alarm.Set(clock.Never)
	r.Run(100)
	r.want(t)
}

// Who sets it for the same time again and again does not put it off, also when that time
// is past.
func TestAlarm_isNotPutOff(t *testing.T) {
	r := newRinging(100)
	due := r.Now()
	for range 20 {
		r.alarm.Set(due)
		r.Run(10)
	}
	r.want(t, 100, 200)
}

// A kick makes it ring at once and once, whatever it is set for meanwhile; then it rings
// when it is set for.
func TestAlarm_kick(t *testing.T) {
	r := newRinging(10)
	r.next = 500
	r.alarm.Set(400)
	r.alarm.Kick()
	r.alarm.Kick()
	r.alarm.Set(300)
	r.Run(0)
	r.want(t, 0)
	r.next = clock.Never
	r.Run(1000)
	r.want(t, 500)
}
