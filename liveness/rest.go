package liveness

import "time"

const (
	// restAfter is how long there has been no traffic when boomerangs become rarer
	// (Config.Rests).
	restAfter = 5 * time.Second
	// atOnce is how many boomerangs of a resting Watcher are sent at the same time, so that
	// the process wakes up once for them.
	atOnce = 16
)

// rest is how a Watcher rests.
type rest struct {
	on   bool
	slot time.Duration // when the next boomerangs are sent
	n    int           // how many
}

// Resting reports whether boomerangs are as rare as those of an idle carrier, since there has
// been no traffic for a while and nothing speaks against a path.
func (w *Watcher) Resting() bool { return w.rest.on }

// mayRest reports whether there is nothing to be found out in a hurry.
func (w *Watcher) mayRest() bool {
	if !w.config.Rests || w.now-w.traffic < restAfter || w.proof.off {
		return false
	}
	for i := range w.near.paths {
		p := &w.near.paths[i]
		if !p.down && (p.cause != fine || p.suspicious(w.now) || !w.proof.bounces[i].proved) {
			return false
		}
	}
	return true
}

// restful returns when the next turn of a boomerang is, and whether the Watcher rests.
func (w *Watcher) restful(least time.Duration) (d time.Duration, ok bool) {
	if w.rest.on = w.mayRest(); !w.rest.on {
		return 0, false
	}
	if least > 0 { // it was not sent for want of budget, and must not wait for another round
		return least, true
	}
	if w.rest.slot <= w.now || w.rest.n >= atOnce {
		w.rest.slot, w.rest.n = w.now+w.jitter(max(idleInterval*w.config.Interval, w.interval(true))), 0
	}
	w.rest.n++
	return w.rest.slot - w.now, true
}

// stir ends the rest: all boomerangs are sent within an Interval.
func (w *Watcher) stir() {
	if w.rest.on {
		w.rest.on = false
		w.scheduleGroup(&w.near)
	}
}
