package hedera

import (
	"net/netip"
	"slices"
	"time"
)

// Result is what a Round has found.
type Result struct {
	Placed  []Assignment // all
	Changed []Assignment // those of Placed that are new, or have another path than before
	Ended   []Assignment // placements that count no more
	Moved   []Assignment // what those of Changed were before that have other Relays now
	Flows   int          // that are known
	Dead    int          // flows whose rule's path is dead
}

// Work is a round under way. It has copies of what is known of the flows, so that it is
// computed while reports come in.
type Work struct {
	rule    Rule
	fabric  Fabric
	entries []*entry
	flows   []Flow // copies of the entries'
	all     []*Flow
	six     []bool
	ways    []way
}

// way is where a placed flow goes; ok is false if its path is dead.
type way struct {
	via netip.Addr
	ok  bool
}

// Round places all flows.
func (l *Loop) Round(now time.Duration) Result {
	w := l.Begin(now)
	w.Compute()
	return l.Finish(w)
}

// Begin begins a round. There is one at a time: the Work is valid until Finish.
func (l *Loop) Begin(now time.Duration) *Work {
	w := &l.work
	w.rule, w.fabric = l.rule, l.forked
	w.flows, w.six, w.all = w.flows[:0], w.six[:0], w.all[:0]
	l.list = l.table.all(l.list[:0])
	w.entries = w.entries[:0]
	for _, e := range l.list {
		if now-e.last > l.c.Forget {
			l.end(e)
			continue
		}
		w.entries = append(w.entries, e)
		w.flows = append(w.flows, e.Flow)
		w.six = append(w.six, e.tuple.Dst.Is6())
	}
	clear(l.list)
	l.busy = true
	return w
}

// Compute has the rule place the flows. Of the Loop it uses the rule alone, so that Report,
// SetFabric and Refused may be called meanwhile.
func (w *Work) Compute() {
	for i := range w.flows {
		w.all = append(w.all, &w.flows[i])
	}
	w.rule.Round(w.all)
	w.ways = w.ways[:0]
	for i := range w.flows {
		f := &w.flows[i]
		var x way
		if f.Placed {
			x.via, x.ok = w.fabric.Via(f.Src, f.Dst, f.Path, w.six[i])
			x.ok = x.ok && w.fabric.Live(f.Src, f.Dst, f.Path)
		}
		w.ways = append(w.ways, x)
	}
}

// Finish ends a round: it takes over what the Work has found. If SetFabric was called since
// Begin it leaves all flows where they are.
func (l *Loop) Finish(w *Work) (r Result) {
	stale := w.rule != l.rule
	l.busy = false
	for i, e := range w.entries {
		f := &w.flows[i]
		switch {
		case e.heap < 0: // it has ended meanwhile
			if !stale {
				w.rule.End(f)
			}
		case stale:
			if e.told {
				r.Placed = append(r.Placed, Assignment{e.node, e.tuple, e.path, e.via})
			}
		default:
			e.Flow = *f
			l.take(e, w.ways[i], &r)
		}
	}
	clear(w.entries)
	r.Flows = l.Flows()
	r.Ended, l.ended = l.ended, nil
	return r
}

// take notes where a flow goes.
func (l *Loop) take(e *entry, to way, r *Result) {
	switch {
	case !e.Placed:
		l.withdraw(e)
		return
	case !to.ok:
		l.refused[RefusedDead]++
		r.Dead++
		l.rule.End(&e.Flow)
		l.withdraw(e)
		return
	}
	a := Assignment{e.node, e.tuple, e.Path, to.via}
	if was := (Assignment{e.node, e.tuple, e.path, e.via}); !e.told || was != a {
		r.Changed = append(r.Changed, a)
		if f := l.c.Fabric; e.told && !slices.Equal(f.Relays(was), f.Relays(a)) {
			r.Moved = append(r.Moved, was)
		}
	}
	e.told, e.path, e.via = true, e.Path, to.via
	r.Placed = append(r.Placed, a)
}
