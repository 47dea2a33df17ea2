package liveness

// keepFloor holds back suspects, the weakest evidence first, so that enough paths remain
// to every destination with traffic and for every kind of pair. It marks the suspects
// that are not held.
func (w *Watcher) keepFloor() {
	for _, s := range w.suspects {
		w.marks.set(s.Link)
	}
	tight := w.belowFloor()
	if len(tight) == 0 {
		return
	}
	for _, s := range w.suspects {
		w.marks.clear(s.Link)
	}
	// Those that have enough left without any suspect have it without some.
	for i := range w.suspects {
		s := &w.suspects[i]
		w.marks.set(s.Link)
		for _, paths := range tight {
			if w.short(paths) {
				s.Held = true
				w.marks.clear(s.Link)
				break
			}
		}
	}
}

// belowFloor returns the sets of paths of which the marks take too many.
func (w *Watcher) belowFloor() (tight []some) {
	for i := range w.kinds {
		if paths := w.boomerangs(&w.kinds[i]); w.short(paths) {
			tight = append(tight, paths)
		}
	}
	for _, g := range w.order {
		if paths := g.all(); w.differsFromKind(g) && w.short(paths) {
			tight = append(tight, paths)
		}
	}
	return tight
}

// some are paths of a group: those that ups names, or all if it is nil.
type some struct {
	paths []path
	ups   []int32
}

// boomerangs are those of a kind.
func (w *Watcher) boomerangs(k *kind) some { return some{w.near.paths, k.ups} }

func (g *group) all() some { return some{paths: g.paths} }

func (s some) len() int {
	if s.ups != nil {
		return len(s.ups)
	}
	return len(s.paths)
}

func (s some) at(i int) *path {
	if s.ups != nil {
		i = int(s.ups[i])
	}
	return &s.paths[i]
}

// differsFromKind reports whether a destination's paths have more faults than those of
// all pairs of their kind: faults on its own side.
func (w *Watcher) differsFromKind(g *group) bool {
	if g.farDown > 0 {
		return true
	}
	for i := range w.suspects {
		if s := &w.suspects[i]; s.far() && w.base.OnPaths(s.Link, w.near.rack, g.rack) {
			return true
		}
	}
	return false
}

// short reports whether the marks take more of a set of paths than the floor
// allows.
func (w *Watcher) short(paths some) bool {
	live, left := w.count(paths)
	return float64(left) < w.config.Floor*float64(live)
}

// count returns how many of a set of paths the baseline has live, and how many of
// these the marks leave.
func (w *Watcher) count(paths some) (live, left int) {
	for i := range paths.len() {
		// What carries nothing is not part of what the floor is of.
		if p := paths.at(i); !p.down && !w.proof.avoids(p.up) {
			live++
			if !w.taken(p) {
				left++
			}
		}
	}
	return live, left
}

// taken reports whether a link of a path is marked.
func (w *Watcher) taken(p *path) bool {
	n := &w.near.paths[p.up]
	return w.marks.has(p.high) || w.marks.has(p.low) || w.marks.has(n.high) || w.marks.has(n.low)
}
