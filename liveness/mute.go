package liveness

import (
	"fmt"
	"net/netip"
	"time"
)

// silence looks at a group after a miss. A destination that has answered none of many
// probes by any path is mute: it is dead, or does not run weft. That says nothing about
// links. A mute group gets few probes.
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

// Heard says that a probe of another host has come in, so that host runs weft. If it was
// mute, it is tried at once. Heard allocates nothing.
func (w *Watcher) Heard(from netip.Addr, now time.Duration) {
	w.at(now)
	if g := w.groups[from]; g != nil && g.mute {
		w.hasten(g)
	}
}

// hasten makes a mute group's next try due at once, but not more often than the probes of
// a healthy path.
func (w *Watcher) hasten(g *group) {
	g.retry = min(g.retry, max(w.now, g.latest+w.config.Interval))
	w.retryAny(g)
}

// plain reports whether a mute group counts as a host without weft. A host that has
// answered before counts as one only after many tries: its paths or the host have more
// likely died, and may return. Boomerangs are never plain: their host is this one.
func (w *Watcher) plain(g *group) bool {
	return g != &w.near && (g.answered < 0 || g.tries >= triesMute)
}

// wait returns how long a mute group is left alone after a try. A plain host answers each
// probe with an ICMP error. Its kernel may send this host only one a second (Linux:
// net.ipv4.icmp_ratelimit), and other programs need some of them.
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

// retry is the turn of a path of a group whose probes tell nothing. A path that is out of
// use waits for the end of its hold. One healthy path carries the tries of the whole
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

// try probes the next few paths of a mute group, or only the next one, to see whether the
// group answers again.
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

// deaf reports whether nothing comes home any more. Then misses say nothing about others.
func (w *Watcher) deaf() bool { return w.near.mute && w.near.answered >= 0 }

// retryAny lets a healthy path of a mute group carry the next try.
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

// whyMute says that a mute host has answered before; "" if it counts as one without weft. Of
// the own host's boomerangs the proof says more.
func (w *Watcher) whyMute(g *group) string {
	if g == &w.near || w.plain(g) || w.deaf() {
		return ""
	}
	return fmt.Sprintf("answers no probes any more, for %s", seconds(w.now-g.quiet))
}
