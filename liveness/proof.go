package liveness

import (
	"slices"
	"time"

	"weft/topology"
)

// Proof of the carrier, for each bouncing switch. Boomerangs need no peer. They come home
// only if the switch takes the outer header off and routes the inner packet. Replies to
// requests prove the same. A switch from which nothing comes home any more has lost its
// proof. That needs no other path to compare with, and no floor keeps the switch in use.
//
// Congestion: probes have a class of their own where switches have one. Where switches
// have one queue, a switch loses its proof only after more misses in a row, over a longer
// time, than a queue explains. Time while the process was not run does not count: see
// stalls.

const (
	missedInRow = 10                     // boomerangs to one switch, or longer than unproved
	missedByAll = 30                     // boomerangs or requests of a group; then it is mute
	unproved    = 300 * time.Millisecond // at least, and 5 Intervals; without anything coming home
	regained    = 5                      // come home in a row from a switch that has lost its proof
)

// proof is what is known of whether the carrier works.
type proof struct {
	off      bool     // there are no probes: the carrier is used unproved
	bounces  []bounce // by the place of the boomerang in near.paths
	kinds    []kindProof
	racks    map[topology.NodeID]*rackProof // of watched destinations
	order    []*rackProof                   // the same in the order of their arrival
	edges    *racks
	own      topology.NodeID   // edge switch
	due      time.Duration     // when to look again
	avoided  []topology.LinkID // of paths not used for want of proof or size
	stale    bool              // carriage is to be made anew
	carriage *Carriage
	idle     bool
}

// bounce is what is known of one bouncing switch.
type bounce struct {
	proved bool
	once   bool          // proved, then or now
	homes  uint8         // come home in a row, while it is not proved
	missed uint16        // boomerangs in a row
	since  time.Duration // sending time of the first of these
	latest time.Duration // and of the last
	home   time.Duration // sending time of the latest that came home
	avoid  bool          // not to be used, since others are better
}

// kindProof is that of all racks whose paths have the same bouncing switches.
type kindProof struct {
	gate  gate
	first time.Duration // when the first of its switches was proved; 0: none has been
}

// rackProof is that of a rack with watched destinations.
type rackProof struct {
	edge   topology.NodeID
	gate   gate
	kind   int32
	groups []*group
}

// beginProof forgets everything, and gets ready for a new fabric.
func (w *Watcher) beginProof() {
	t := w.base
	pr := &w.proof
	*pr = proof{
		off: w.budget.none(), bounces: make([]bounce, len(w.near.paths)), kinds: make([]kindProof, len(w.kinds)),
		racks: make(map[topology.NodeID]*rackProof), edges: &racks{make(map[topology.NodeID]int32)}, own: w.near.rack,
		idle: pr.idle,
	}
	for i := range pr.bounces {
		pr.bounces[i].home = -1
	}
	for edge := range t.Racks() {
		if edge == pr.own {
			continue
		}
		pr.edges.kind[edge] = -1
		if k, ok := w.kindOf(t.Paths(w.config.Self, edge)); ok {
			pr.edges.kind[edge] = int32(k.number)
		}
	}
	pr.due = never
	w.lookAgain(w.now)
}

// lookAgain has prove called at a time, or before.
func (w *Watcher) lookAgain(at time.Duration) { w.proof.due = min(w.proof.due, at) }

// joins adds a destination to its rack's.
func (w *Watcher) joins(g *group) {
	r := w.proof.racks[g.rack]
	if r == nil {
		// Nothing speaks against the rack; whether its kind is proved is looked at first.
		r = &rackProof{edge: g.rack, kind: max(w.proof.edges.kind[g.rack], 0), gate: gate{open: true, ever: true, since: w.now, good: -1}}
		w.proof.racks[g.rack] = r
		w.proof.order = append(w.proof.order, r)
	}
	r.groups = append(r.groups, g)
	w.lookAgain(w.now)
}

// parts takes a destination out.
func (w *Watcher) parts(g *group) {
	r := w.proof.racks[g.rack]
	r.groups = slices.DeleteFunc(r.groups, func(o *group) bool { return o == g })
	if len(r.groups) == 0 {
		delete(w.proof.racks, g.rack)
		w.proof.order = slices.DeleteFunc(w.proof.order, func(o *rackProof) bool { return o == r })
	}
	w.lookAgain(w.now)
}

// cameHome takes note of a boomerang or a reply: the path's bouncing switch works.
func (w *Watcher) cameHome(p *path, sent time.Duration) {
	b := &w.proof.bounces[p.up]
	b.missed = 0
	b.home = max(b.home, sent)
	if w.near.mute && p.group != &w.near {
		w.hasten(&w.near)
	}
	if b.proved {
		return
	}
	if b.homes = min(b.homes+1, regained); b.homes == 1 {
		for _, g := range w.order { // who has not answered for the same reason
			if g.mute && g.answered >= 0 {
				w.hasten(g)
			}
		}
	}
	if !b.once {
		b.proved, b.once = true, true
		w.wake(&w.near.paths[p.up], 0) // how long packets may be is found out at once
	}
	w.lookAgain(w.now + w.config.urgent()) // with others that come home now
}

// stayedOut takes note of a small boomerang that was missed.
func (w *Watcher) stayedOut(p *path, sent time.Duration) {
	b := &w.proof.bounces[p.up]
	if b.home > sent {
		return
	}
	b.homes = 0
	if b.missed++; b.missed == 1 {
		b.since, b.latest = sent, sent
	}
	b.missed, b.latest = min(b.missed, 1<<14), max(b.latest, sent)
	if !b.proved || w.gone(b) {
		w.lookAgain(w.now)
	}
}

// gone reports whether boomerangs to a switch have failed for so long that it loses its
// proof. The time between the first and the last missed boomerang counts. So nothing is
// concluded from a single miss while few are sent because all are silent.
func (w *Watcher) gone(b *bounce) bool {
	return b.missed >= missedInRow && b.latest >= b.since+w.patience()
}

// patience is how long nothing comes home before the proof is lost.
func (w *Watcher) patience() time.Duration { return max(unproved, 5*w.config.Interval) }

// quiet reports whether no probe of a group has been answered for so long that they must
// be lost on the way.
func (w *Watcher) quiet(g *group) bool {
	if g.silent < missedByAll && !g.mute {
		return false
	}
	at := g.quiet + w.patience()
	if g.mute {
		// Few probes are sent from then on. So some are before it is concluded.
		if !g.tested {
			if soon := max(w.now, at-w.patience()/5); g.retry > soon {
				g.retry = soon
				w.retryAny(g)
			}
			return false
		}
		at = max(at, g.latest+g.paths[0].timeout(&w.config)+w.config.minTimeout())
	}
	if w.now < at {
		w.lookAgain(at)
		return false
	}
	return true
}

// usable reports whether a boomerang's switch is proved for data.
func (w *Watcher) usable(up int32) bool {
	return w.proof.bounces[up].proved && (w.config.MTU == 0 || w.near.paths[up].size.fits(len(w.sizes)))
}

// prove decides to which racks the carrier is used and by which switches, if that is due.
func (w *Watcher) prove() {
	pr := &w.proof
	if w.now < pr.due {
		return
	}
	pr.due = never
	if pr.off {
		return
	}
	all := w.quiet(&w.near) && !w.anyHome(w.near.quiet+w.patience()/2)
	for i := range pr.bounces {
		w.proveBounce(&pr.bounces[i], &w.near.paths[i], all)
	}
	for i := range w.kinds {
		w.proveKind(&w.kinds[i])
	}
	for _, r := range pr.order {
		w.proveRack(r)
	}
	w.avoid()
	pr.stale = true
}

func (w *Watcher) proveBounce(b *bounce, p *path, all bool) {
	switch {
	case b.proved && (all || w.gone(b)):
		b.proved, b.homes = false, 0
		w.stats.Unproved++
	case !b.proved && b.once && b.homes >= regained && p.cause == fine:
		b.proved = true
	}
}

// anyHome reports whether any boomerang or reply to a probe sent at or after a time has
// come home.
func (w *Watcher) anyHome(since time.Duration) bool {
	return slices.ContainsFunc(w.proof.bounces, func(b bounce) bool { return b.home >= since })
}

// proveKind looks at the switches of a kind. The carrier is used if one of them works. At
// the start it waits a moment, so that the others can show whether they work.
func (w *Watcher) proveKind(k *kind) {
	kp := &w.proof.kinds[k.number]
	usable, waiting := false, false
	for _, up := range k.ups {
		p, b := &w.near.paths[up], &w.proof.bounces[up]
		if p.down {
			continue
		}
		switch {
		case w.usable(up):
			usable = true
		case !b.once && b.missed < missedInRow, b.proved && !p.size.settled():
			waiting = true
		}
	}
	if usable && waiting && !kp.gate.ever {
		if kp.first == 0 {
			kp.first = max(w.now, 1)
		}
		if at := kp.first + min(max(w.patience(), 2*w.interval(true)), time.Second); w.now < at {
			w.lookAgain(at)
			usable = false
		}
	}
	w.move(&kp.gate, usable, func() string { return w.whyKind(k) })
}

// proveRack looks at a rack's destinations. The rack loses its proof if no path by a
// proved switch is left. It also loses it if none of the destinations that have answered
// probes answers any more, though boomerangs come home. While its kind is not proved, it
// waits.
func (w *Watcher) proveRack(r *rackProof) {
	if !w.proof.kinds[r.kind].gate.open {
		return
	}
	path, peers, silent := false, 0, 0
	for _, g := range r.groups {
		for i := range g.paths {
			if p := &g.paths[i]; !p.down && w.usable(p.up) {
				path = true
				break
			}
		}
		if g.answered >= 0 {
			peers++
			if w.quiet(g) && w.homeSince(r.kind, g.quiet+w.patience()/2) {
				silent++
			}
		}
	}
	w.move(&r.gate, path && (peers == 0 || silent < peers), func() string { return w.whyRack(r, path) })
}

// homeSince reports whether a boomerang that was sent since then has come home from a
// switch of a kind.
func (w *Watcher) homeSince(kind int32, then time.Duration) bool {
	return slices.ContainsFunc(w.kinds[kind].ups, func(up int32) bool { return w.proof.bounces[up].home >= then })
}
