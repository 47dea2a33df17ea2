package liveness

import (
	"math"
	"slices"
	"time"

	"weft/topology"
)

// idleInterval is the factor by which boomerangs are rarer while the carrier is idle. See
// SetIdle.
const idleInterval = 10

// bytesPerProbe is what full-size probes may take for each probe of Config.Budget.
const bytesPerProbe = 300

// SetIdle says whether another carrier is in use instead. The Watcher then only keeps the
// idle carrier proved, with a tenth of the boomerangs and few full-size probes. It
// ignores Active.
func (w *Watcher) SetIdle(idle bool, now time.Duration) {
	w.at(now)
	if idle == w.proof.idle {
		return
	}
	w.proof.idle = idle
	if !idle {
		w.scheduleGroup(&w.near)
	}
}

// avoids reports whether paths by a switch are not used: the switch is not proved, or
// packets by it must be shorter than by others.
func (pr *proof) avoids(up int32) bool { return pr.bounces[up].avoid }

// avoid finds the paths that are not to be used although nothing convicts them.
func (w *Watcher) avoid() {
	var links []topology.LinkID
	for i := range w.kinds {
		links = w.avoidNear(&w.kinds[i], links)
	}
	for _, r := range w.proof.order {
		links = w.avoidFar(r, links)
	}
	slices.Sort(links)
	if links = slices.Compact(links); !slices.Equal(links, w.proof.avoided) {
		w.proof.avoided, w.dirty = links, true
	}
}

// avoidNear avoids the switches of a kind that are not proved. It also avoids those whose
// packets must be shorter, if enough others remain (Config.Floor).
func (w *Watcher) avoidNear(k *kind, links []topology.LinkID) []topology.LinkID {
	var levels []uint8
	open := w.proof.kinds[k.number].gate.open
	for _, up := range k.ups {
		if open && !w.near.paths[up].down && w.usable(up) {
			levels = append(levels, w.near.paths[up].size.level)
		}
	}
	most := w.mostOf(levels)
	for _, up := range k.ups {
		p, b := &w.near.paths[up], &w.proof.bounces[up]
		b.avoid = len(levels) > 0 && !p.down && (!w.usable(up) || p.size.level > most)
	}
	for _, up := range k.ups {
		if w.proof.avoids(up) {
			links = w.linksOf(&w.near.paths[up], links)
		}
	}
	return links
}

// mostOf returns the greatest level among the best part of levels, which is Config.Floor
// of them. A smaller level means longer packets.
func (w *Watcher) mostOf(levels []uint8) uint8 {
	if len(levels) == 0 {
		return 0
	}
	slices.Sort(levels)
	return levels[int(math.Ceil(w.config.Floor*float64(len(levels))))-1]
}

// linksOf adds links that take exactly the paths by a switch out of use. If boomerangs to
// switches further up come home over the link to this switch, the link itself must stay
// in use. Then these are the links down to its racks, which only packets that bounce
// there take.
func (w *Watcher) linksOf(p *path, links []topology.LinkID) []topology.LinkID {
	if p.low != none {
		return append(links, p.high)
	}
	for up := range w.near.paths {
		if q := &w.near.paths[up]; q.low == p.high && !q.down && w.proof.bounces[up].proved {
			for _, port := range w.base.Ports(w.base.Link(p.high).B) {
				if !port.Up && port.Peer != w.proof.own {
					links = append(links, port.Link)
				}
			}
			return links
		}
	}
	return append(links, p.high)
}

// avoidFar avoids the paths to a rack whose packets must be shorter, if enough others
// remain.
func (w *Watcher) avoidFar(r *rackProof, links []topology.LinkID) []topology.LinkID {
	k := &w.kinds[r.kind]
	if !r.small() || !w.proof.kinds[r.kind].gate.open {
		return links
	}
	var levels []uint8
	used := func(p *path) bool { return !p.down && w.usable(p.up) && !w.proof.avoids(p.up) }
	for i := range k.ups {
		if used(&r.groups[0].paths[i]) {
			levels = append(levels, w.levelOf(r, i))
		}
	}
	most := w.mostOf(levels)
	for i := range k.ups {
		if p := &r.groups[0].paths[i]; used(p) && w.levelOf(r, i) > most {
			links = append(links, p.high)
		}
	}
	return links
}

// avoidsFar reports whether avoidFar has taken a path out of use: it leads to the rack by a
// link that is avoided, and what is long gets to the path's switch, not to the rack.
func (w *Watcher) avoidsFar(r *rackProof, path int) bool {
	p := &r.groups[0].paths[path]
	return slices.Contains(w.proof.avoided, p.high) && !p.down && !w.proof.avoids(p.up) && w.levelOf(r, path) > w.near.paths[p.up].size.level
}

// small reports whether packets by a path must be shorter to the rack than to the path's
// bouncing switch. That is rare.
func (r *rackProof) small() bool {
	return slices.ContainsFunc(r.groups, func(g *group) bool { return g.small > 0 })
}

// levelOf is that of a path to a rack, by what boomerangs and the rack's peers tell.
func (w *Watcher) levelOf(r *rackProof, path int) uint8 {
	level := w.near.paths[r.groups[0].paths[path].up].size.level
	for _, g := range r.groups {
		if s := &g.paths[path].size; s.known {
			level = max(level, s.level)
		}
	}
	return level
}

// sizeOf returns the level of the longest packets that all paths in use to a rack carry,
// and one of the switches that set this limit, or -1. If r is nil, it is for the racks of
// a kind without watched destinations.
func (w *Watcher) sizeOf(k *kind, r *rackProof) (level uint8, by int32) {
	if w.near.small == 0 && (r == nil || !r.small()) {
		return 0, -1
	}
	live := func(p *path) bool { return !p.down && w.usesLinks(p) }
	by = -1
	for i, up := range k.ups {
		if !live(&w.near.paths[up]) || w.proof.avoids(up) || r != nil && !live(&r.groups[0].paths[i]) {
			continue
		}
		at := w.near.paths[up].size.level
		if r != nil {
			at = w.levelOf(r, i)
		}
		if at > level && int(at) < len(w.sizes) { // by what carries nothing no length is right
			level, by = at, up
		}
	}
	return level, by
}
