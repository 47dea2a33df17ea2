package liveness

import "time"

// Next returns when Tick is due; the time may have passed.
func (w *Watcher) Next() time.Duration {
	if len(w.out) > 0 {
		return w.now
	}
	return min(w.schedule.next(), w.awaited.late.next())
}

// Tick does what is due, at a cost in proportion to it; Probes then has what is
// to be sent. A Tick that comes late sends no more than one probe per path for
// all the time it was late.
func (w *Watcher) Tick(now time.Duration) {
	w.at(now)
	for w.awaited.late.next() <= w.now {
		i := w.awaited.late.heap[0].id
		w.awaited.late.remove(0)
		w.expired(i)
	}
	for w.schedule.next() <= w.now {
		w.turn(w.schedule.heap[0].id)
	}
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
	}
	if w.unprobed(g) {
		w.retry(p)
		return
	}
	w.later(p, w.probe(p))
}

// probe sends a path's probe, and another path's beside it where the path is
// suspicious; it returns how long the path has to wait at least for want of
// budget.
func (w *Watcher) probe(p *path) (wait time.Duration) {
	if n := &w.near.paths[p.up]; n != p && n.cause != fine {
		p.misses, p.convicts, p.goods = 0, 0, 0 // it would not get far enough
		return w.config.Interval
	}
	if !p.suspicious(w.now) {
		if !w.budget.take(1, p.cause != fine, w.now) {
			w.stats.Skipped++
			return w.budget.wait(w.now)
		}
		w.send(p)
		return 0
	}
	control, sent := w.controlOf(p)
	cost := 1
	if control != nil && !sent {
		cost = 2
	}
	if !w.budget.take(cost, true, w.now) {
		w.stats.Skipped++
		return w.budget.wait(w.now)
	}
	if cost == 2 {
		if i, ok := w.send(control); ok {
			p.group.control, p.group.controlAt = i, w.now
		}
	}
	if i, ok := w.send(p); ok && control != nil && p.group.controlAt == w.now {
		w.awaited.pair(i, p.group.control)
	}
	return 0
}

// controlOf returns the path whose probe is to go beside that of p, nil if there
// is none, and whether that is under way.
func (w *Watcher) controlOf(p *path) (control *path, sent bool) {
	g := p.group
	if g.controlAt == w.now {
		if e := &w.awaited.ring[g.control]; e.sent == w.now && e.path != nil && e.path.group == g && e.path != p {
			return e.path, true
		}
	}
	n := len(g.paths)
	first := w.random(n)
	for i := range n {
		q := &g.paths[(first+i)%n]
		if q == p || q.down || q.cause != fine || w.near.paths[q.up].cause != fine {
			continue
		}
		if q.misses == 0 {
			return q, false
		}
		if control == nil {
			control = q
		}
		if i >= 64 {
			break
		}
	}
	return control, false
}

// later schedules a path's next turn, no sooner than after wait.
func (w *Watcher) later(p *path, wait time.Duration) {
	var d time.Duration
	switch {
	case p.cause != fine && p.goods > 0:
		d = w.config.Interval
	case p.cause != fine:
		d = min(max((w.now-p.since)/50, w.config.Interval), w.config.longest())
	case p.suspicious(w.now):
		d = w.config.urgent()
	default:
		d = w.interval(p.group == &w.near)
	}
	w.setTurn(p, w.jitter(max(d, wait)))
}

// interval returns the time between two probes of a path that is fine: what the
// configuration says or, if three quarters of the budget do not suffice for it,
// what they do; boomerangs and the others may have half of these each, and what
// the other half does not need.
func (w *Watcher) interval(near bool) time.Duration {
	if w.budget.gap == 0 {
		return never / 2
	}
	share := 0.75 * float64(time.Second) / float64(w.budget.gap)
	per := w.config.Interval.Seconds()
	wantNear, wantFar := float64(w.nearN)/per, float64(w.farN)/per
	rate := min(wantNear, max(share/2, share-wantFar))
	n := w.nearN
	if !near {
		rate = min(wantFar, share-rate)
		n = w.farN
	}
	if n == 0 {
		return w.config.Interval
	}
	d := float64(n) / rate * float64(time.Second)
	return max(w.config.Interval, time.Duration(min(d, float64(never/4))))
}

// wake has a path's turn come in at most d.
func (w *Watcher) wake(p *path, d time.Duration) {
	if p.place != nowhere && w.schedule.heap[p.place].due <= w.now+d {
		return
	}
	w.setTurn(p, d)
}

func (w *Watcher) setTurn(p *path, d time.Duration) {
	if p.place == nowhere {
		*w.scheduledOf(p.group)++
	}
	w.schedule.set(p, p.place, w.now+max(d, 0))
}

func (w *Watcher) unschedule(p *path) {
	if p.place != nowhere {
		*w.scheduledOf(p.group)--
	}
	w.schedule.remove(p.place)
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
