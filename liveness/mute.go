package liveness

// silence looks at a group after a miss: who has answered none of many probes
// by any path is mute, because it is dead or because nobody there knows of
// probes. That says nothing of links. From then on it gets a few probes a
// second.
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

// retry is the turn of a path of a group whose probes tell nothing. Those that
// are out of use wait for the end of their time. One that is fine stands for the
// group: it has the next few paths in a row try whether that has changed.
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
	if w.budget.none() {
		return
	}
	g := p.group
	for sent, i := 0, 0; i < len(g.paths) && sent < triesMute; i++ {
		g.tried = (g.tried + 1) % len(g.paths)
		if q := &g.paths[g.tried]; !q.down && w.budget.steady(w.now) {
			w.send(q)
			sent++
		}
	}
	w.retryAny(g)
}

// retryAny has a path of a group that is fine stand for it in about a second,
// unless one does.
func (w *Watcher) retryAny(g *group) {
	var first *path
	for i := range g.paths {
		p := &g.paths[i]
		if p.cause != fine || p.down {
			continue
		}
		if p.place != nowhere {
			return
		}
		if first == nil {
			first = p
		}
	}
	if first != nil {
		w.setTurn(first, w.jitter(retryMute))
	}
}
