package liveness

import (
	"net/netip"
	"time"
)

// Active says that there is traffic to a destination, a host as in topology.HostAt, at one
// of its addresses. Its paths are then probed for a second. A destination in the same rack,
// or in no rack, has no paths. An address of another family than Config.Address is ignored.
// Above MaxDestinations, the destination that has been idle longest is forgotten;
// if none is idle, the new one is not watched. Both are counted. Active allocates only
// for a new destination.
func (w *Watcher) Active(dst, address netip.Addr, now time.Duration) {
	w.at(now)
	if w.proof.idle || address.Is6() != w.config.six() {
		return
	}
	g := w.groups[dst]
	if g == nil {
		if g = w.watch(dst); g == nil {
			return
		}
	}
	if w.contested && w.now-g.active > activeFor {
		w.dirty = true // it may contradict again
	}
	g.active, g.address, w.traffic = w.now, address, w.now
	w.stir()
	if g.parked {
		g.parked = false
		w.scheduleGroup(g)
	}
}

// watch makes the group of a destination; nil if there is no room, or nothing to
// watch.
func (w *Watcher) watch(dst netip.Addr) *group {
	host, edge, ok := w.base.HostAt(dst)
	if !ok || host != dst {
		return nil
	}
	set := w.base.Paths(w.config.Self, edge)
	k, ok := w.kindOf(set)
	if !ok || !w.makeRoom() {
		return nil
	}
	g := &group{dst: dst, rack: edge, paths: make([]path, len(k.ups))}
	for i := range g.paths {
		p := &g.paths[i]
		_, down := set.Halves(i)
		p.index, p.up = int32(i), k.ups[i]
		p.setHalf(down)
		if p.down = w.near.paths[p.up].down; w.downHere(p) {
			p.down = true
			g.farDown++
		}
	}
	g.init(w.now)
	w.groups[dst] = g
	w.order = append(w.order, g)
	w.joins(g)
	w.scheduleGroup(g)
	w.dirty = true // the floor is this destination's as well
	return g
}

// makeRoom sees to it that another destination may be watched.
func (w *Watcher) makeRoom() bool {
	if len(w.order) < w.config.MaxDestinations {
		return true
	}
	if w.now >= w.room {
		idlest := w.order[0]
		for _, g := range w.order {
			if g.active < idlest.active {
				idlest = g
			}
		}
		if w.now-idlest.active > activeFor {
			w.forget(idlest)
			w.stats.Evicted++
			return true
		}
		w.room = idlest.active + activeFor // nobody is idle before
	}
	w.stats.Refused++
	return false
}

// forget takes a destination out, with what was held against its paths.
func (w *Watcher) forget(g *group) {
	for i := range g.paths {
		w.unschedule(&g.paths[i])
	}
	g.gone = true
	w.parts(g)
	delete(w.groups, g.dst)
	for i, o := range w.order {
		if o == g {
			w.order = append(w.order[:i], w.order[i+1:]...)
			break
		}
	}
	w.dirty = true
}

// Sent says that packets to a destination took one of its paths, at the time of the
// latest call that had a time. Sent and Lost allocate nothing. Both ignore destinations
// and paths that are not watched.
func (w *Watcher) Sent(dst netip.Addr, path, packets int) {
	if p := w.pathOf(dst, path); p != nil {
		p.lately.add(w.now, packets, 0)
		piece := w.piece()
		p.lost.addSent(piece, packets)
		p.group.packet.addSent(piece, packets)
	}
}

// Lost says that packets which took a path had to be sent again. Sent has counted them
// before.
func (w *Watcher) Lost(dst netip.Addr, path, packets int, now time.Duration) {
	w.at(now)
	p := w.pathOf(dst, path)
	if p == nil {
		return
	}
	p.lately.add(w.now, 0, packets)
	piece := w.piece()
	p.lost.addLost(piece, packets)
	w.near.paths[p.up].tally.Lost += uint64(packets)
	p.group.packet.addLost(piece, packets)
	if p.cause == fine && !p.down {
		w.weigh(p)
	}
}

func (w *Watcher) pathOf(dst netip.Addr, i int) *path {
	g := w.groups[dst]
	if g == nil || uint(i) >= uint(len(g.paths)) {
		return nil
	}
	return &g.paths[i]
}

func (w *Watcher) piece() int32 { return int32(w.now / w.config.piece()) }

// weigh looks at a path's losses. If they are a little above those of others, the path is
// probed at once. If they are beyond doubt, and for some time, they convict it.
func (w *Watcher) weigh(p *path) {
	if w.now-p.judged < w.config.urgent() && p.judged > 0 {
		return
	}
	g := p.group
	piece := w.piece()
	p.lost.roll(piece)
	g.packet.roll(piece)
	sent, lost := p.lost.sums()
	allSent, allLost := g.packet.sums()
	others := 0.0
	if n := allSent - sent; n > 0 {
		others = min(max(float64(allLost-lost)/float64(n), 0), 1)
	}
	if standsOut(lost, sent, blameless(others)) < hint {
		return
	}
	p.judged = w.now
	p.alert = w.now + 5*w.config.Interval
	w.near.paths[p.up].alert = p.alert
	if !w.unprobed(g) {
		w.hurry(p)
	}
	if !w.isLosing(p) {
		return
	}
	if w.blamesFar(p, 0) {
		w.convict(p, losses)
	} else if n := &w.near.paths[p.up]; n.cause == fine && int(n.convicts) >= w.config.Multiplier {
		w.convict(n, dead) // only which half it is was in doubt
	}
}

// isLosing reports whether most other paths are demonstrably fine, and a path's
// losses stand out against theirs beyond doubt: most of its packets in three
// pieces of the window or more, or a good part in most pieces. A burst ends before.
func (w *Watcher) isLosing(p *path) bool {
	sent, lost, pieces := p.lost.since()
	all, good, goodSent, goodLost := 0, 0, 0, 0
	for i := range p.group.paths {
		q := &p.group.paths[i]
		if q == p || q.cause != fine || q.down {
			continue
		}
		q.lost.roll(p.lost.piece)
		s, l := q.lost.sums()
		if s == 0 {
			continue
		}
		all++
		if l*sent*4 <= lost*s { // a quarter of the rate, at most
			good++
			goodSent += s
			goodLost += l
		}
	}
	if all == 0 || 2*good < all || goodSent < 16 {
		return false
	}
	rate := float64(goodLost) / float64(goodSent)
	if standsOut(lost, sent, blameless(rate)) < doubt || differs(lost, sent, goodLost, goodSent) < doubt {
		return false
	}
	return pieces >= 3 && standsOut(lost, sent, 0.5) > likely || pieces >= 12 && 100*lost >= 15*sent
}
