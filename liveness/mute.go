package liveness

// silence looks at a group after a miss: who has answered none of many probes
// by any path is mute, because it is dead or because nobody there knows of
// probes. That says nothing of links. From then on it gets a probe a second.
func (w *Watcher) silence(g *group) {
	if g.mute || g.silent < max(8, min(2*len(g.paths), 32)) || w.now-g.quiet < w.config.longest() {
		return
	}
	g.mute = true
	w.stats.Muted++
	for i := range g.paths {
		p := &g.paths[i]
		p.misses, p.convicts, p.goods = 0, 0, 0
		w.unschedule(p)
		if p.cause != fine && !p.down {
			w.retry(p)
		}
	}
	w.retryAny(g)
}

// unmute goes on with a group that has answered.
func (w *Watcher) unmute(g *group) {
	g.mute = false
	w.scheduleGroup(g)
}

// retry is the turn of a path of a group whose probes tell nothing: one path of
// those that are fine tries whether that has changed, and those that are not
// wait for the end of their time.
func (w *Watcher) retry(p *path) {
	if p.cause != fine {
		d := p.hold
		if p.cause != losses {
			d = max(d, p.since+w.config.MaxHold)
		}
		w.setTurn(p, max(d-w.now, w.config.Interval))
		return
	}
	w.unschedule(p)
	if w.budget.gap == 0 {
		return
	}
	if w.budget.take(1, true, w.now) {
		w.send(p)
	}
	w.retryAny(p.group)
}

// retryAny has any path of a group that is fine try in about a second, unless
// one is about to.
func (w *Watcher) retryAny(g *group) {
	n := len(g.paths)
	for i := range g.paths {
		if p := &g.paths[i]; p.cause == fine && p.place != nowhere {
			return
		}
	}
	first := w.random(n)
	for i := range n {
		if p := &g.paths[(first+i)%n]; p.cause == fine && !p.down {
			w.setTurn(p, w.jitter(retryMute))
			return
		}
	}
}
