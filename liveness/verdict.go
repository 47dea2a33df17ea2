package liveness

import (
	"math"
	"math/bits"
	"time"
)

// judge looks at what probes say of a path in use.
func (w *Watcher) judge(p *path) {
	if p.cause != fine || p.down || p.group.mute || !w.blamesFar(p, p.accused) {
		return
	}
	switch {
	case w.isDead(p):
		w.convict(p, dead)
	case isLossy(p):
		w.convict(p, lossy)
	}
}

// blamesFar reports whether the faults of a path since a time are in its far half: the
// boomerang of its bouncing switch has come home since. It is true for boomerangs, and
// where boomerangs do not work.
func (w *Watcher) blamesFar(p *path, since time.Duration) bool {
	n := &w.near.paths[p.up]
	if n == p || w.near.answered < 0 || w.near.mute {
		return true
	}
	return n.cause == fine && n.misses == 0 && n.answered >= since
}

// bursty is how many misses a burst of losses may cause, if it loses a third of all
// packets. A silence five times as long as the least is no burst.
const bursty = 10

// isDead reports whether a path has been silent for so long, and beside so many probes of
// other paths that came home, that it must be dead.
func (w *Watcher) isDead(p *path) bool {
	if int(p.convicts) < w.config.Multiplier {
		return false
	}
	silence := max(w.config.silence(), p.group.peak*3/2)
	if p.silentAt-p.accused < silence || p.silentAt-p.convicted < silence/2 {
		return false
	}
	if p.convicts < bursty && p.silentAt-p.accused < 5*silence {
		return false
	}
	return int(p.convicts) >= w.needed(p)
}

// needed returns how many probes missed in a row are beyond doubt at the loss
// that the other paths have.
func (w *Watcher) needed(p *path) int {
	missed, n := 1, 100 // what is believed before anything is known
	for i := range p.group.paths {
		if q := &p.group.paths[i]; q != p && q.cause == fine && !q.down {
			missed += q.missed()
			n += int(q.recorded)
		}
	}
	rate := min(float64(missed)/float64(n), 0.5)
	return max(w.config.Multiplier, int(math.Ceil(doubt/-math.Log(rate))))
}

// isLossy reports whether a path misses probes when most others do not. Of several misses
// in a row two count, since a burst of losses is no bad cable.
func isLossy(p *path) bool {
	const enough = 24
	if p.recorded < enough {
		return false
	}
	h := p.history
	missed := bits.OnesCount64(h&^(h<<1)) + bits.OnesCount64(h&(h<<1)&^(h<<2))
	if missed*10 < int(p.recorded) {
		return false
	}
	others, ok := medianMissed(p)
	return ok && standsOut(missed, int(p.recorded), blameless(others)) > doubt
}

// medianMissed returns the median of the rates at which the other paths of the
// group miss probes; false if too little is known of them.
func medianMissed(p *path) (rate float64, ok bool) {
	var paths [65]int // by rate in 64ths, rounded up
	n := 0
	for i := range p.group.paths {
		q := &p.group.paths[i]
		if q == p || q.cause != fine || q.down || q.recorded < 8 {
			continue
		}
		paths[(q.missed()*64+int(q.recorded)-1)/int(q.recorded)]++
		n++
	}
	below := 0
	for r, count := range paths {
		if below += count; 2*below > n {
			return float64(r) / 64, true
		}
	}
	return 0, false
}

// convict takes a path out of use.
func (w *Watcher) convict(p *path, why cause) {
	if w.now-p.since > forgetIdle {
		p.again = 0
	}
	hold := w.config.MinHold
	for range p.again {
		if hold = min(2*hold, w.config.MaxHold); hold == w.config.MaxHold {
			break
		}
	}
	p.again = min(p.again+1, 64)
	p.clean()
	p.cause, p.since, p.hold = why, w.now, w.now+w.jitter(hold)
	p.needed = uint8(5 + w.random(4))
	p.group.bad++
	w.stats.Quarantined++
	w.dirty = true
	w.wake(p, w.jitter(w.config.Interval))
	if why != dead {
		return
	}
	// What shares a link with it may be dead, too.
	for i := range p.group.paths {
		q := &p.group.paths[i]
		if p.low != none && q != p && (q.low == p.low || q.high == p.low) && q.cause == fine && !q.down && q.place != nowhere {
			w.wake(q, 0)
		}
	}
}

// consider lets a path return when its time has come and its probes are good.
func (w *Watcher) consider(p *path) {
	if w.now < p.hold {
		return
	}
	const enough = 48 // probes that show a path no longer lossy
	switch {
	case w.unprobed(p.group):
		// Nothing will be learnt but by using it. What probes have found is believed
		// for longer than what losses have, and of the host's own side for good:
		// all is silent there, so nothing is any better.
		if p.group == &w.near || p.cause != losses && w.now-p.since < w.config.MaxHold {
			return
		}
	case p.goods < int16(p.needed):
		return
	case p.cause != dead && (p.recorded < enough || bits.OnesCount64(p.history&(1<<enough-1)) > 1):
		return
	}
	w.readmit(p)
}

func (w *Watcher) readmit(p *path) {
	p.clean()
	p.cause, p.since = fine, w.now
	p.group.bad--
	w.stats.Readmitted++
	w.dirty = true
}

// unprobed reports whether a group's probes tell nothing.
func (w *Watcher) unprobed(g *group) bool { return g.mute || w.budget.none() }
