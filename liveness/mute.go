package liveness

import (
	"time"

	"weft/topology"
)

// silence looks at a group after a miss: who has answered none of many probes
// by any path is mute, because it is dead or because nobody there knows of
// probes. That says nothing of links. From then on it gets few probes.
func (w *Watcher) silence(g *group) {
	if g.mute || g.silent < max(8, min(2*len(g.paths), 32)) || w.now-g.quiet < w.config.longest() {
		return
	}
	g.mute, g.tested, g.tries, g.latest = true, false, 0, w.now
	g.retry = w.now + w.jitter(w.wait(g))
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

// Heard says that a host's own probe has come in. So it runs weft: if it has been
// mute, it is tried at once. It allocates nothing.
func (w *Watcher) Heard(from topology.NodeID, now time.Duration) {
	w.at(now)
	if g := w.groups[from]; g != nil && g.mute {
		w.hasten(g)
	}
}

// hasten has a mute group tried at once, though no more often than a path that is
// fine.
func (w *Watcher) hasten(g *group) {
	g.retry = min(g.retry, max(w.now, g.latest+w.config.Interval))
	w.retryAny(g)
}

// plain reports whether a mute group is taken for a host without weft. One that
// has answered before is so only after many tries: more likely its paths have died,
// or the host has, and is about to return. Boomerangs never are: their host is this one.
func (w *Watcher) plain(g *group) bool {
	return g != &w.near && (g.answered < 0 || g.tries >= triesMute)
}

// wait returns how long a mute group is left alone after a try. To each probe a
// plain host answers with an ICMP error, of which its kernel may send this one no
// more than one a second (Linux: net.ipv4.icmp_ratelimit): others want some, too.
func (w *Watcher) wait(g *group) time.Duration {
	tries := g.tries
	switch {
	case !w.plain(g):
		tries = 0
	case g.answered >= 0:
		tries -= triesMute
	}
	return min(retryMute<<min(tries, 16), maxMute)
}

// retry is the turn of a path of a group whose probes tell nothing. Those that
// are out of use wait for the end of their time. One that is fine stands for the
// group.
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
	if g := p.group; g.retry <= w.now {
		w.try(g)
	}
	w.retryAny(p.group)
}

// try has the next few paths of a mute group in a row, or the next one, see whether
// that has changed.
func (w *Watcher) try(g *group) {
	most := pathsMute
	if w.plain(g) {
		most = 1
	}
	sent := 0
	for i := 0; i < len(g.paths) && sent < most; i++ {
		g.tried = (g.tried + 1) % len(g.paths)
		if q := &g.paths[g.tried]; !q.down && w.budget.steady(w.now) {
			w.send(q)
			sent++
		}
	}
	if sent == 0 {
		g.retry = w.now + w.budget.wait(w.now)
		return
	}
	g.latest = w.now
	if g.tested && !w.deaf() { // the first is the end of what made it mute
		g.tries = min(g.tries+1, 1<<10)
	}
	g.tested = true
	g.retry = w.now + w.jitter(w.wait(g))
}

// deaf reports whether nothing at all comes home any more: that tells nothing of
// anybody else.
func (w *Watcher) deaf() bool { return w.near.mute && w.near.answered >= 0 }

// retryAny has a path of a mute group that is fine stand for it, when it is to be
// tried again.
func (w *Watcher) retryAny(g *group) {
	var stands *path
	for i := range g.paths {
		p := &g.paths[i]
		if p.cause != fine || p.down {
			continue
		}
		if p.place != nowhere {
			stands = p
			break
		}
		if stands == nil {
			stands = p
		}
	}
	if stands != nil {
		w.setTurn(stands, g.retry-w.now)
	}
}
