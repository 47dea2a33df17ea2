package liveness

import (
	"net/netip"
	"slices"
)

// What a Watcher has found out holds when the fabric grows, where that is data: paths are
// known by the uplink and the bouncing switch. Only what is new has to be proved.

// memory is what was known of a fabric.
type memory struct {
	near    group
	order   []*group
	kinds   []kind
	bounces []bounce
	gates   []kindProof
	racks   map[*group]gate
}

// course is what tells a boomerang from others in any fabric of the host.
type course struct {
	from int16
	via  netip.Addr
}

func (p *path) course() course { return course{p.from, p.via} }

// remember returns what is known.
func (w *Watcher) remember() memory {
	m := memory{near: w.near, order: w.order, kinds: w.kinds, bounces: w.proof.bounces, gates: w.proof.kinds, racks: make(map[*group]gate)}
	for _, r := range w.proof.order {
		for _, g := range r.groups {
			m.racks[g] = r.gate
		}
	}
	return m
}

// inherit takes over what was known of another fabric of the same host.
func (w *Watcher) inherit(m memory) {
	at := make(map[course]int) // places in m.near
	for i := range m.near.paths {
		by := m.near.paths[i].course()
		if _, ok := at[by]; !ok {
			at[by] = i
		}
	}
	w.resume(&w.near, &m.near, func(p *path) (*path, bool) {
		i, ok := at[p.course()]
		if !ok {
			return nil, false
		}
		w.proof.bounces[p.up] = m.bounces[i]
		return &m.near.paths[i], true
	})
	for i := range w.kinds {
		if old, ok := w.nearest(&w.kinds[i], m); ok {
			w.proof.kinds[i] = m.gates[old]
		}
	}
	for _, old := range m.order {
		g := w.watch(old.dst)
		if g == nil {
			continue
		}
		by := make(map[course]*path)
		for i := range old.paths {
			p := &old.paths[i]
			if c := m.near.paths[p.up].course(); by[c] == nil {
				by[c] = p
			}
		}
		w.resume(g, old, func(p *path) (*path, bool) {
			o, ok := by[w.near.paths[p.up].course()]
			return o, ok
		})
		if r := w.proof.racks[g.rack]; len(r.groups) == 1 {
			r.gate = m.racks[old]
		}
	}
	w.dirty = true
	w.lookAgain(w.now)
}

// resume has a group go on from a former one. was returns what a path was.
func (w *Watcher) resume(g, old *group, was func(*path) (*path, bool)) {
	g.address, g.answered, g.silent, g.quiet, g.active = old.address, old.answered, old.silent, old.quiet, old.active
	g.mute, g.tested, g.tries, g.latest, g.retry = old.mute, old.tested, old.tries, old.latest, old.retry
	g.srtt, g.peak, g.packet = old.srtt, old.peak, old.packet
	for i := range g.paths {
		p := &g.paths[i]
		o, ok := was(p)
		if !ok {
			continue
		}
		n := *o
		if n.tally != nil { // of several that o stands for, each goes on alone
			t := *n.tally
			n.tally = &t
		}
		n.group, n.place, n.index, n.up, n.high, n.low, n.via, n.from = g, p.place, p.index, p.up, p.high, p.low, p.via, p.from
		if n.down = p.down; n.down != o.down {
			n.clean()
		}
		*p = n
		if p.cause != fine {
			g.bad++
		}
		if p.small {
			g.small++
		}
		if p.slow.again > 0 {
			w.slows.paths = append(w.slows.paths, p)
			w.slows.due = min(w.slows.due, p.slow.until)
		}
	}
}

// nearest returns the former kind that has most boomerangs in common with one; false
// if there is none.
func (w *Watcher) nearest(k *kind, m memory) (best int, ok bool) {
	most := 0
	for i := range m.kinds {
		old := m.kinds[i].ups
		n := 0
		for _, up := range k.ups {
			by := w.near.paths[up].course()
			if slices.ContainsFunc(old, func(o int32) bool { return m.near.paths[o].course() == by }) {
				n++
			}
		}
		if n > most || n == most && n > 0 && len(old) == len(k.ups) {
			best, most = i, n
		}
	}
	return best, most > 0
}
