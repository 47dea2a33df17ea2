package liveness

import (
	"fmt"
	"slices"
	"time"
)

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
