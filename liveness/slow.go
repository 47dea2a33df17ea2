package liveness

import (
	"slices"
	"time"

	"weft/internal/bucket"
)

// A slow path answers every probe and loses little. But a flow that uses all paths evenly
// can go no faster than its slowest path allows. The queue before the slow link shows the
// fault. Most probes overtake queues where switches let them, so a few probes of data's
// class are sent beside them; these wait where data waits (encap.Probe.AsData).
//
// A path is slow if in two windows in a row even the fastest of these probes took longer
// than slowLeast, and slowTimes as long as by half of the other paths to the same place.
// The least of a window tells a standing queue from bursts, which come and go. A delay
// that more than half of the paths share convicts none.
//
// Boomerangs test the host's own half, and convict links. Slow requests convict a path if
// the boomerang to the same switch was faster by slowLeast, so that the other half is at
// fault. A destination could make its answers slow, so they convict only its own paths.
// When a path leaves or returns, the load of the others changes, so their windows begin
// anew.
//
// The queue drains when nobody uses the path, and probes then look good. So only time
// brings a path back, on trial: one slow window convicts it again, for twice as long. A
// path that stays good for forgetIdle loses its record.
//
// Rejected: the difference in time between a long and a short probe, which shows a link's
// rate while the link is idle. It shows nothing where links are slow only under load, and
// at the rates of today's fabrics a host's clock and scheduler hide it.
const (
	slowWindow = 500 * time.Millisecond // at least
	slowHomes  = 4                      // probes of a window that come home, at least
	slowLeast  = 5 * time.Millisecond
	slowTimes  = 4
	slowHold   = 2 * time.Second // out of use, the first time
	slowMost   = time.Minute     // and at last
	slowEvery  = 40 * time.Millisecond
	// slowShare is how many probes of data's class there may be for each of
	// Config.Budget.
	slowShare = 0.5
)

// slowness is what probes of data's class tell of a path.
type slowness struct {
	next time.Duration // when such a probe is due

	begun time.Duration // the window
	homes uint16        // probes of it that came home
	least time.Duration // round trip of these

	whole wait  // the latest whole window
	bad   uint8 // whole windows in a row that speak against the path

	out    bool          // not to be used
	again  uint8         // times that it was found slow and not forgiven
	moved  time.Duration // when out became what it is
	fresh  time.Duration // probes sent before do not count
	until  time.Duration // when it is to return, or to be forgiven
	took   time.Duration // when it was found slow the first time: the least by it
	others time.Duration // and by half of the others
}

// wait is the least round trip of a window.
type wait struct {
	least      time.Duration
	begun, end time.Duration // end 0: there is none
}

// slows are the paths that have been found slow and not been forgiven.
type slows struct {
	paths  []*path
	due    time.Duration // when one of these is to return, or to be forgiven
	bucket bucket.Bucket
	list   []time.Duration // empty between uses
}

func (s *slows) begin() { s.paths, s.due = nil, never }

// sendAsData sends a probe of data's class beside another one, if it is time to.
func (w *Watcher) sendAsData(p *path) {
	s := &p.slow
	if w.now < s.next || s.out || p.misses > 0 || p.group == &w.near && w.now-w.traffic > activeFor {
		return
	}
	if !w.slows.bucket.Take(1, w.now) {
		return
	}
	s.next = w.now + slowEvery
	i, ok := w.awaited.add(p, w.rng.Uint64(), w.now, w.now+maxTimeout)
	if !ok {
		w.stats.Skipped++
		return
	}
	w.awaited.ring[i].asData = true
	w.stats.AsData++
	w.queue(p, i, 0)
}

// waited takes note of a probe of data's class that came home.
func (w *Watcher) waited(p *path, e *await) {
	s := &p.slow
	if s.out || e.sent < s.fresh || e.stalls != w.stats.Stalls {
		return
	}
	rtt := max(w.now-e.sent, 1)
	if s.homes == 0 {
		if s.begun = w.now; s.begun-s.whole.end > slowWindow {
			s.bad = 0
		}
		s.least = rtt
	}
	s.homes, s.least = min(s.homes+1, 1<<14), min(s.least, rtt)
	if w.now-s.begun < slowWindow || s.homes < slowHomes {
		return
	}
	s.whole, s.homes = wait{s.least, s.begun, w.now}, 0
	w.judgeSlow(p)
}

// judgeSlow looks at a whole window of a path in use.
func (w *Watcher) judgeSlow(p *path) {
	s := &p.slow
	took, others, known := s.whole.least, time.Duration(0), false
	if took > slowLeast && p.cause == fine && !p.down && !p.group.mute && w.waitsBehind(p) {
		others, known = w.waitBeside(p)
	}
	if !known || took <= slowLeast+slowTimes*others {
		s.bad = 0
		return
	}
	if s.bad++; s.bad < 2 && s.again == 0 {
		return
	}
	hold := min(slowHold<<min(s.again, 8), slowMost)
	if s.again == 0 {
		w.slows.paths = append(w.slows.paths, p)
		s.took, s.others = took, others
	}
	s.again = min(s.again+1, 100)
	s.out, s.moved, s.until = true, w.now, w.now+w.jitter(hold)
	w.measureAnew(p)
	w.slows.due = min(w.slows.due, s.until)
	w.stats.Slow++
	w.dirty = true
}

// waitsBehind reports whether a path's probes wait in the half that the path tests:
// behind the bouncing switch, unless it is a boomerang's.
func (w *Watcher) waitsBehind(p *path) bool {
	n := &w.near.paths[p.up]
	near := &n.slow.whole
	return n == p || !n.slow.out && near.end > 0 && near.end >= p.slow.whole.begun && p.slow.whole.least-near.least > slowLeast
}

// measureAnew makes p, and all paths that it is compared with, begin a new window.
func (w *Watcher) measureAnew(p *path) {
	all := w.beside(p)
	for i := range all.len() {
		s := &all.at(i).slow
		s.fresh, s.homes, s.bad, s.whole = w.now, 0, 0, wait{}
	}
}

// waitBeside returns the longest wait among the faster half of the other paths to the
// same place; ok is false if that is not known of half of them. Paths without traffic do
// not count: their queues do not show how long they would be with traffic.
func (w *Watcher) waitBeside(p *path) (time.Duration, bool) {
	since := p.slow.whole.begun - slowWindow
	all, list := 0, w.slows.list[:0]
	paths := w.beside(p)
	for i := range paths.len() {
		q := paths.at(i)
		if q == p || q.down || q.cause != fine || w.near.paths[q.up].cause != fine {
			continue
		}
		if !q.slow.out && !w.carries(q) {
			continue
		}
		all++
		if whole := &q.slow.whole; !q.slow.out && whole.end > 0 && whole.end >= since {
			list = append(list, whole.least)
		}
	}
	w.slows.list = list[:0]
	half := (all + 1) / 2
	if all == 0 || len(list) < half {
		return 0, false
	}
	slices.Sort(list)
	return list[half-1], true
}

// carries reports whether traffic goes by a path, or, of a boomerang, over its links.
func (w *Watcher) carries(p *path) bool {
	used := func(q *path) bool {
		n := &w.near.paths[q.up]
		return !q.down && !w.proof.avoids(q.up) && w.usesLinks(q) && w.usesLinks(n)
	}
	if p.group != &w.near {
		return used(p)
	}
	for _, g := range w.order {
		for i := range g.paths {
			q := &g.paths[i]
			above := p.low == none && w.near.paths[q.up].low == p.high
			if (q.up == p.up || above) && w.now-g.active <= activeFor && used(q) {
				return true
			}
		}
	}
	return false
}

// usesLinks reports whether the links of a path are in use.
func (w *Watcher) usesLinks(p *path) bool {
	return w.current.Live(p.high) && (p.low == none || w.current.Live(p.low))
}

// beside returns the paths that a path is compared with, itself included: all to its
// destination, or the boomerangs of its kind; if it has several kinds, of the largest.
func (w *Watcher) beside(p *path) some {
	if p.group != &w.near {
		return p.group.all()
	}
	var largest kind
	for _, k := range w.kinds {
		if slices.Contains(k.ups, p.up) && len(k.ups) > len(largest.ups) {
			largest = k
		}
	}
	return w.boomerangs(&largest)
}
