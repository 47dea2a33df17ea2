package liveness

import (
	"fmt"
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

// returnSlow lets slow paths return, and forgives those that have been back for long.
func (w *Watcher) returnSlow() {
	if w.now < w.slows.due {
		return
	}
	w.slows.due = never
	kept := w.slows.paths[:0]
	for _, p := range w.slows.paths {
		s := &p.slow
		if p.group.gone {
			continue
		}
		if w.now >= s.until {
			w.dirty = true
			if !s.out {
				s.again = 0
				continue
			}
			s.out, s.moved, s.until = false, w.now, w.now+forgetIdle
			w.measureAnew(p)
		}
		kept = append(kept, p)
		w.slows.due = min(w.slows.due, s.until)
	}
	clear(w.slows.paths[len(kept):])
	w.slows.paths = kept
}

// accuseSlow suspects links of the own side that are slow: the lower one of a path if
// the boomerang to the switch above it waits, too, which explains all paths over it.
func (w *Watcher) accuseSlow() {
	var below []*path
	for _, p := range w.slows.paths {
		if p.group == &w.near && p.isSlow() && p.low == none {
			w.accuse(p, p.high, rankSlow)
			below = append(below, p)
		}
	}
	for _, p := range w.slows.paths {
		if p.group == &w.near && p.isSlow() && p.low != none &&
			!slices.ContainsFunc(below, func(q *path) bool { return q.high == p.low }) {
			w.accuse(p, p.high, rankSlow)
		}
	}
}

// accuseSlowFar has slow paths to single destinations avoided.
func (w *Watcher) accuseSlowFar() {
	for _, p := range w.slows.paths {
		if p.group == &w.near || p.group.gone || !p.isSlow() || !w.tells(p) || w.near.paths[p.up].slow.out {
			continue
		}
		s := accusation(p, p.high, rankSlow+rankFar)
		s.Dst, s.Path = p.group.dst, int(p.index)
		w.alone = append(w.alone, s)
	}
}

// isSlow reports whether a path is out of use since it is slow, and for no better
// reason.
func (p *path) isSlow() bool { return p.slow.out && p.cause == fine && !p.down }

// whySlow says what has shown a path to be slow, the first time.
func (p *path) whySlow() string {
	return fmt.Sprintf("slow: for a second every probe took at least %s, by others %s", millis(p.slow.took), millis(p.slow.others))
}

// remarkSlow names the paths to a kind's racks, or to a rack, that are slow; "" if none
// is. It names them until their record is lost, so that the text does not change with
// every trial.
func (w *Watcher) remarkSlow(k *kind, r *rackProof) string {
	took, others := never, time.Duration(0)
	names := w.switches(k, func(path int, up int32) bool {
		p := w.slowest(up, path, r)
		if p == nil {
			return false
		}
		took, others = min(took, p.slow.took), max(others, p.slow.others)
		return true
	})
	if names == "" {
		return ""
	}
	return fmt.Sprintf("less by %s: slow: for a second every probe from there took at least %s, by others %s: a link on the way is slower than it should be, or full",
		names, millis(took), millis(others))
}

// slowest returns a path by a switch that has been found slow: the boomerang, the one
// over its lower link or, if r is not nil, the path to a destination in the rack; nil if
// there is none.
func (w *Watcher) slowest(up int32, path int, r *rackProof) *path {
	near := &w.near.paths[up]
	for _, p := range w.slows.paths {
		if p == near || p.group == &w.near && p.low == none && p.high == near.low {
			return p
		}
	}
	if r == nil {
		return nil
	}
	for _, g := range r.groups {
		if p := &g.paths[path]; p.slow.again > 0 {
			return p
		}
	}
	return nil
}

// slow reports whether a path to the rack has been found slow.
func (w *Watcher) slow(r *rackProof) bool {
	return slices.ContainsFunc(w.slows.paths, func(p *path) bool { return p.group.rack == r.edge && p.group != &w.near })
}

// millis writes a time in milliseconds, with two digits that count.
func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 0.995:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 9.95:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}
