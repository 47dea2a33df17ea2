package topoupdate

import (
	"errors"
	"time"
)

// Damping delays the reports that a flapping link is up again. A failure is always
// reported at once. A return is reported after the link has worked without a break for
// Hold after a first failure, twice as long after each further one, Max at most. A link
// that has worked for Forget begins with Hold again. RFC 2439 damps failures, too. Here a
// link that is reported up while it is down costs packets, and a link that is reported
// down while it is up costs only capacity. A switch's last way up is never delayed. Max
// is short: where many links flap at once, longer delays would cut off more than the
// failures do.
//
// Zero values mean the defaults.
type Damping struct {
	Hold   time.Duration // default 250 ms; negative: no delay
	Max    time.Duration // default 2 s
	Forget time.Duration // default 60 s
}

const (
	defaultHold   = 250 * time.Millisecond
	defaultMax    = 2 * time.Second
	defaultForget = time.Minute
)

func (d *Damping) setDefaults() error {
	if d.Hold == 0 {
		d.Hold = defaultHold
	}
	if d.Max == 0 {
		d.Max = max(defaultMax, d.Hold)
	}
	if d.Forget == 0 {
		d.Forget = defaultForget
	}
	switch {
	case d.Max < d.Hold:
		return errors.New("Damping.Max is less than Damping.Hold: raise Max or lower Hold")
	case d.Forget < 0:
		return errors.New("Damping.Forget is negative: give a duration")
	}
	return nil
}

// damped is one link under damping. The zero value is a link that is up and has
// never failed.
type damped struct {
	down   bool          // as reported
	good   bool          // while down: it works, and waits for upAt
	upAt   time.Duration // when it may be reported up
	hold   time.Duration // the last one imposed
	failed time.Duration // when it last failed
}

// set tells what is the case; the result says whether the report changed.
func (l *damped) set(good bool, d *Damping, now time.Duration) bool {
	switch {
	case good && l.down && !l.good:
		l.good = true
		l.upAt = now + l.hold
		return l.expire(now)
	case good || l.down && !l.good:
		return false
	}
	if l.hold == 0 || now-l.failed-l.hold >= d.Forget {
		l.hold = max(d.Hold, 0)
	} else {
		l.hold = min(2*l.hold, d.Max)
	}
	changed := !l.down
	l.down, l.good, l.failed = true, false, now
	return changed
}

// expire reports the link up if its time has come; the result says whether it
// has.
func (l *damped) expire(now time.Duration) bool {
	if l.down && l.good && now >= l.upAt {
		l.down, l.good = false, false
		return true
	}
	return false
}

// next returns when expire is due.
func (l *damped) next() time.Duration {
	if l.down && l.good {
		return l.upAt
	}
	return never
}
