package liveness

import (
	"time"

	"weft/internal/timerq"
)

const (
	never   = timerq.Never   // when nothing is due
	nowhere = timerq.Nowhere // the place of what is in no queue
)

// Next returns when Tick is due, which may be in the past.
func (w *Watcher) Next() time.Duration {
	if len(w.out) > 0 {
		return w.clock(w.now)
	}
	return w.clock(min(w.schedule.Next(), w.awaited.late.Next(), w.proof.due, w.slows.due))
}

// Tick does what is due. Its cost grows with that. Probes then has the probes to send. A
// Tick that is late by more than a quarter of Config.Interval means that this process was
// not run: that time is left out, and what was due is put off.
func (w *Watcher) Tick(now time.Duration) {
	w.at(now)
	w.stalls.begun = true
	for w.awaited.late.Next() <= w.now {
		w.expired(w.awaited.late.Pop())
		if w.rest.on && !w.mayRest() {
			w.stir()
		}
	}
	w.returnSlow()
	for w.schedule.Next() <= w.now {
		w.turn(w.schedule.First())
	}
	w.prove()
}

// turn is a path's turn to be probed.
func (w *Watcher) turn(p *path) {
	g := p.group
	switch {
	case p.down:
		w.unschedule(p)
		return
	case g != &w.near && w.now-g.active > activeFor:
		g.parked = true
		if p.cause == fine {
			w.unschedule(p)
			return
		}
		if w.now-g.active > forgetIdle {
			w.forget(g)
			return
		}
	}
	if p.cause != fine {
		w.consider(p)
	}
	if p.cause == fine && p.convicts > 0 {
		w.judge(p) // its near half may have been cleared since
		w.clear(p)
	}
	if w.unprobed(g) {
		w.retry(p)
		return
	}
	w.later(p, w.probe(p))
}

// probe sends a path's probe, and beside it another path's probe if the path is
// suspicious. It returns how long the path must wait at least if the budget does not
// suffice.
func (w *Watcher) probe(p *path) (wait time.Duration) {
	switch n := &w.near.paths[p.up]; {
	case n == p:
	case n.cause != fine:
		p.misses, p.convicts, p.goods = 0, 0, 0 // it would not get far enough
		return w.config.Interval
	case n.misses > 0:
		return w.config.urgent() // nor tell anything before that is settled
	}
	if !p.suspicious(w.now) {
		if !w.budget.steady(w.now) {
			w.stats.Skipped++
			return w.budget.wait(w.now)
		}
		w.send(p)
		w.sendFull(p)
		w.sendAsData(p)
		return 0
	}
	g := p.group
	fresh := g.control.path != p && w.now-g.control.sent <= w.config.urgent()/2
	if !fresh {
		g.control = control{path: w.otherThan(p)}
	}
	cost := 2
	if fresh || g.control.path == nil {
		cost = 1
	}
	if !w.budget.urgent(cost, w.now) {
		w.stats.Skipped++
		g.control = control{}
		return w.budget.wait(w.now)
	}
	if cost == 2 {
		g.control.sent = w.now
		g.control.i, _ = w.send(g.control.path)
		g.control.token = w.awaited.tokenOf(g.control.i)
	}
	if i, ok := w.send(p); ok {
		w.awaited.pair(i, g.control)
	}
	w.sendFull(p)
	w.sendAsData(p)
	return 0
}

// otherThan returns the path whose probe is sent beside that of p: one without suspicion
// if there is any; nil if p is the only one in use.
func (w *Watcher) otherThan(p *path) (other *path) {
	g := p.group
	n := len(g.paths)
	first := w.random(n)
	for i := range n {
		q := &g.paths[(first+i)%n]
		if q == p || q.down || q.cause != fine || w.near.paths[q.up].cause != fine {
			continue
		}
		if q.misses == 0 {
			return q
		}
		if other == nil {
			other = q
		}
		if i >= 64 {
			break
		}
	}
	return other
}

// later schedules a path's next turn, no sooner than after wait.
func (w *Watcher) later(p *path, wait time.Duration) {
	var d time.Duration
	switch {
	case p.cause != fine && p.goods > 0:
		d = w.config.Interval
	case p.cause != fine:
		d = min(max((w.now-p.since)/50, w.config.Interval), w.config.longest())
	case p.suspicious(w.now) && p.misses > 32:
		d = w.config.Interval // what keeps the verdict waiting takes its time
	case p.suspicious(w.now):
		d = w.config.urgent()
	case p.size.step != calm:
		d = w.config.Interval
	default:
		if p.group == &w.near {
			if d, ok := w.restful(wait); ok {
				w.setTurn(p, d)
				return
			}
		}
		d = w.interval(p.group == &w.near)
	}
	w.setTurn(p, w.jitter(max(d, wait)))
}

// interval returns the time between two probes of a healthy path. It is Config.Interval,
// or longer if the steady part of the budget does not suffice. Boomerangs and requests
// may each use half of the budget, and what the other half leaves.
func (w *Watcher) interval(near bool) time.Duration {
	if w.budget.none() {
		return never / 2
	}
	share := 0.95 * w.budget.rate()
	per := w.config.Interval.Seconds()
	wantNear, wantFar := float64(w.nearN)/per, float64(w.farN)/per
	rate := min(wantNear, max(share/2, share-wantFar))
	n := w.nearN
	if !near {
		rate = min(wantFar, share-rate)
		n = w.farN
	}
	least := w.config.Interval
	if near && w.proof.idle {
		least *= idleInterval
	}
	if n == 0 {
		return least
	}
	d := float64(n) / rate * float64(time.Second)
	return max(least, time.Duration(min(d, float64(never/4))))
}

// wake has a path's turn come in at most d.
func (w *Watcher) wake(p *path, d time.Duration) {
	if p.place != nowhere && w.schedule.Due(p.place) <= w.now+d {
		return
	}
	w.setTurn(p, d)
}

func (w *Watcher) setTurn(p *path, d time.Duration) {
	if p.place == nowhere {
		*w.scheduledOf(p.group)++
	}
	w.schedule.Set(p, p.place, w.now+max(d, 0))
}

func (w *Watcher) unschedule(p *path) {
	if p.place != nowhere {
		*w.scheduledOf(p.group)--
	}
	w.schedule.Remove(p.place)
}

func (w *Watcher) scheduledOf(g *group) *int {
	if g == &w.near {
		return &w.nearN
	}
	return &w.farN
}

// scheduleGroup spreads the first turns of a group's paths over an interval.
func (w *Watcher) scheduleGroup(g *group) {
	if w.unprobed(g) {
		if g.mute {
			w.retryAny(g)
		}
		return
	}
	n := w.scheduledOf(g)
	was := *n
	*n += len(g.paths)
	d := w.interval(g == &w.near)
	*n = was
	for i := range g.paths {
		if p := &g.paths[i]; !p.down {
			w.wake(p, time.Duration(w.rng.Uint64()%uint64(d)))
		}
	}
}
