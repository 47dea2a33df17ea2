package liveness

import (
	"cmp"
	"net/netip"
	"slices"
)

// hear decides which of the links that destinations accuse are suspected: those that two
// destinations accuse and none contradicts. All evidence about the other half of a path
// comes from a destination, which answers probes or not and acknowledges what it likes.
// So one destination alone affects only the traffic to itself. Destinations of one rack
// count as one, since they may be one host. For the rack's own links, which no other rack
// uses, two of its hosts decide.
func (w *Watcher) hear() {
	if len(w.alone) < 2 {
		return
	}
	slices.SortFunc(w.alone, func(a, b Suspect) int {
		return cmp.Or(cmp.Compare(a.Link, b.Link), a.Dst.Compare(b.Dst), cmp.Compare(a.Path, b.Path))
	})
	for from := 0; from < len(w.alone); {
		to := from + 1
		for to < len(w.alone) && w.alone[to].Link == w.alone[from].Link {
			to++
		}
		if all := w.alone[from:to]; w.agree(all) {
			w.contested = true
			if !w.contradicted(all) {
				for _, s := range all {
					s.Dst, s.Path = w.near.dst, -1
					w.suspects = append(w.suspects, s)
				}
			}
		}
		from = to
	}
}

// agree reports whether two independent destinations accuse one link: two of different
// racks or, for the rack's own link, two hosts.
func (w *Watcher) agree(all []Suspect) bool {
	first := &all[0]
	own := w.ofRack(first)
	for i := range all[1:] {
		s := &all[1+i]
		if own && s.Dst != first.Dst || !own && w.groups[s.Dst].rack != w.groups[first.Dst].rack {
			return true
		}
	}
	return false
}

// ofRack reports whether the link is the one to the destination's rack.
func (w *Watcher) ofRack(s *Suspect) bool {
	p := &w.groups[s.Dst].paths[s.Path]
	return p.low == none || p.low == s.Link
}

// contradicted reports whether a destination with traffic over an accused link answers
// probes and does not accuse the link: its latest probe over the link has come home, or
// is still to be sent.
func (w *Watcher) contradicted(all []Suspect) bool {
	for _, g := range w.order {
		if w.unprobed(g) || w.now-g.active > activeFor || slices.ContainsFunc(all, func(s Suspect) bool { return s.Dst == g.dst }) {
			continue
		}
		for i := range all {
			s := &all[i]
			if s.Path >= len(g.paths) {
				continue
			}
			p := &g.paths[s.Path]
			if (p.high == s.Link || p.low == s.Link) && p.cause == fine && p.misses == 0 && w.tells(p) {
				return true
			}
		}
	}
	return false
}

// keepFloorAlone holds back paths that single destinations accuse, the weakest evidence
// first, so that enough paths remain to each destination.
func (w *Watcher) keepFloorAlone() {
	if len(w.alone) == 0 {
		return
	}
	for i := range w.suspects {
		if s := &w.suspects[i]; !s.Held {
			w.marks.set(s.Link)
		} else {
			w.marks.clear(s.Link)
		}
	}
	slices.SortFunc(w.alone, func(a, b Suspect) int {
		return cmp.Or(a.Dst.Compare(b.Dst), cmp.Compare(a.rank, b.rank), cmp.Compare(a.Since, b.Since), cmp.Compare(a.Path, b.Path))
	})
	kept := w.alone[:0]
	live, left, dst := 0, 0, netip.Addr{}
	for _, s := range w.alone {
		g := w.groups[s.Dst]
		if s.Dst != dst {
			dst = s.Dst
			live, left = w.count(g.all())
		}
		if p := &g.paths[s.Path]; w.taken(p) {
			continue // by a link that is out of use to all
		}
		if s.Held = float64(left-1) < w.config.Floor*float64(live); !s.Held {
			left--
		}
		kept = append(kept, s)
	}
	w.alone = kept
}
