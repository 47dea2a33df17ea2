package liveness

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"weft/topology"
)

// Suspect is a link that the host's evidence accuses. If only one destination accuses it,
// it is one of the paths to that destination.
type Suspect struct {
	Link  topology.LinkID
	Dst   netip.Addr // only this host's Path is out of use; Self: the link is out of use for all
	Path  int        // its number for the pair; -1 if the link is out of use for all
	Since time.Duration
	Why   string // the evidence against the first path
	Held  bool   // stays in use for Config.Floor
	rank  int    // the better the evidence, the lower
}

const (
	rankNear = 0
	rankFar  = 3
	rankSlow = 6 // and rankFar
)

func (s *Suspect) far() bool { return s.rank%rankSlow >= rankFar }

// marks is a set of links.
type marks []uint64

func (m marks) set(l topology.LinkID)   { m[l/64] |= 1 << (l % 64) }
func (m marks) clear(l topology.LinkID) { m[l/64] &^= 1 << (l % 64) }
func (m marks) has(l topology.LinkID) bool {
	return l != none && m[l/64]&(1<<(l%64)) != 0
}

// infer turns the verdicts on paths into suspected links, and makes a Topology of these
// links and of the paths that single destinations accuse. It looks only at the paths of
// destinations that a verdict concerns, and of those that may contradict it.
func (w *Watcher) infer() {
	w.suspects, w.alone, w.contested = w.suspects[:0], w.alone[:0], false
	w.accuseNear()
	w.accuseSlow()
	for _, s := range w.suspects {
		if s.rank < rankSlow { // by what is slow, something gets as far as the other half
			w.marks.set(s.Link)
		}
	}
	for _, g := range w.order {
		if g.bad > 0 {
			w.accuseFar(g)
		}
	}
	w.hear()
	w.accuseSlowFar()
	w.sortSuspects()
	for _, s := range w.suspects {
		w.marks.clear(s.Link)
	}
	w.keepFloor()
	w.keepFloorAlone()

	var down []topology.LinkID
	for _, s := range w.suspects {
		w.marks.clear(s.Link)
		if !s.Held {
			down = append(down, s.Link)
		}
	}
	var avoided []topology.Avoided
	for _, s := range w.alone {
		if !s.Held {
			avoided = append(avoided, topology.Avoided{Src: w.config.Self, Dst: s.Dst, Path: s.Path})
		}
	}
	for _, l := range w.proof.avoided {
		if !w.behind(l, down) && !w.behind(l, w.proof.avoided) {
			down = append(down, l)
		}
	}
	next := w.base.Without(down...).Avoiding(avoided...)
	changed, same := w.current.Diff(next)
	if !same || len(changed) > 0 || len(w.current.Redirected(next, w.config.Self)) > 0 {
		w.current = next
	}
}

// behind reports whether a link lies behind one that is out of use. No probe crosses it
// then, and silence says nothing about it.
func (w *Watcher) behind(l topology.LinkID, down []topology.LinkID) bool {
	for i := range w.near.paths {
		if p := &w.near.paths[i]; p.high == l && p.low != none && slices.Contains(down, p.low) {
			return true
		}
	}
	return false
}

// accuseNear suspects links of the host's own side. If the boomerang to the switch above
// a path's lower link is bad, too, it accuses the lower link, which explains all paths
// over it; else the link to the bouncing switch itself.
func (w *Watcher) accuseNear() {
	if w.near.bad == 0 {
		return
	}
	paths := w.near.paths
	for i := range paths {
		if p := &paths[i]; p.cause != fine && !p.down && p.low == none && !w.aliveAbove(p) {
			w.accuse(p, p.high, rankNear)
		}
	}
	n := len(w.suspects)
	for i := range paths {
		p := &paths[i]
		if p.cause != fine && !p.down && p.low != none &&
			!slices.ContainsFunc(w.suspects[:n], func(s Suspect) bool { return s.Link == p.low }) {
			w.accuse(p, p.high, rankNear)
		}
	}
}

// aliveAbove reports whether boomerangs came home over a link after the boomerang that
// turns at its upper end died. Then that switch does not bounce, but the link is alive.
func (w *Watcher) aliveAbove(p *path) bool {
	for i := range w.near.paths {
		q := &w.near.paths[i]
		if p.cause == dead && q.low == p.high && q.cause == fine && q.misses == 0 && q.answered >= p.since {
			return true
		}
	}
	return false
}

// accuseFar suspects links of the destination's half. It leaves out paths that suspects
// of the host's half explain. If all other paths over the link to the destination's rack
// are bad, it accuses that link; else the link to the bouncing switch. If no path is
// good, the destination is dead.
func (w *Watcher) accuseFar(g *group) {
	bad, good := 0, 0
	for i := range g.paths {
		if p := &g.paths[i]; w.tells(p) {
			if p.cause == fine {
				good++
			} else {
				bad++
			}
		}
	}
	if bad == 0 || good == 0 {
		return
	}
	for i := range g.paths {
		p := &g.paths[i]
		if p.cause == fine || !w.tells(p) {
			continue
		}
		l := p.high
		if p.low != none && w.allBad(g, p.low) {
			l = p.low
		}
		w.alone = append(w.alone, accusation(p, l, rankFar))
		s := &w.alone[len(w.alone)-1]
		s.Dst, s.Path = g.dst, int(p.index)
	}
}

// tells reports whether a path's state is its far half's.
func (w *Watcher) tells(p *path) bool {
	n := &w.near.paths[p.up]
	return !p.down && !w.marks.has(n.high) && !w.marks.has(n.low)
}

func (w *Watcher) allBad(g *group, low topology.LinkID) bool {
	for i := range g.paths {
		if p := &g.paths[i]; p.low == low && p.cause == fine && w.tells(p) {
			return false
		}
	}
	return true
}

func (w *Watcher) accuse(p *path, l topology.LinkID, rank int) {
	s := accusation(p, l, rank)
	s.Dst = w.near.dst
	w.suspects = append(w.suspects, s)
}

// accusation is of a link, by what is known of a path.
func accusation(p *path, l topology.LinkID, rank int) Suspect {
	s := Suspect{Link: l, Path: -1, Since: p.since, Why: p.cause.String(), rank: rank}
	switch p.cause {
	case fine:
		s.Since, s.Why = p.slow.moved, p.whySlow()
	case lossy:
		s.rank++
	case losses:
		s.rank += 2
	}
	return s
}

// sortSuspects puts the best evidence first, older before newer, and leaves one
// of each link.
func (w *Watcher) sortSuspects() {
	slices.SortFunc(w.suspects, func(a, b Suspect) int {
		return cmp.Or(cmp.Compare(a.Link, b.Link), cmp.Compare(a.rank, b.rank), cmp.Compare(a.Since, b.Since))
	})
	w.suspects = slices.CompactFunc(w.suspects, func(a, b Suspect) bool { return a.Link == b.Link })
	slices.SortFunc(w.suspects, func(a, b Suspect) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Since, b.Since), cmp.Compare(a.Link, b.Link))
	})
}
