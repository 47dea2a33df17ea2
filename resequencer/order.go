package resequencer

import "weft/flowcell"

// irregular deals with every case.
func (b *Buffer[P]) irregular(f *flow[P], s *flowcell.Packet, p P, out []P) []P {
	b.stats.peak()
	b.out = out
	if s.Flags&flowcell.FlagRST != 0 {
		if f != nil {
			b.releaseAll(f, &b.stats.Flushed)
			b.forget(s)
		}
		b.stats.Passed++
		b.out = append(b.out, p)
		return b.take()
	}
	switch {
	case f == nil:
		f = b.remember(s)
		f.delays.ewma = b.config.Hold / alpha
		f.start(s, b.now)
		if !f.began && b.config.Discipline == Juggler {
			f.phase = buildUp
		}
	case f.begins(s):
		b.releaseAll(f, &b.stats.Flushed)
		f.tally = FlowStats{}
		f.start(s, b.now)
	}
	if ahead(s.Seq, f.highest()) < 0 {
		b.outOfOrder(f)
	}
	k := b.pool.packet()
	k.set(p, s.Seq+length(s), s)
	if tcp := s.IsTCP(); !b.near(f, s, tcp) && b.stray(f, k, tcp) {
		b.pass(f, k)
		return b.take()
	}
	switch b.config.Discipline {
	case Off:
		b.deliver(f, k, &b.stats.Passed)
	case Juggler:
		b.juggle(f, k, s)
	default:
		b.order(f, k, s)
	}
	return b.take()
}

// remember begins the flow of s.
func (b *Buffer[P]) remember(s *flowcell.Packet) *flow[P] {
	if b.keeping != nil {
		return b.rememberKept(s)
	}
	b.changes++
	f, _ := b.flows.Use(&s.Flow, b.now)
	return f
}

// forget ends the flow of s, of which nothing is held.
func (b *Buffer[P]) forget(s *flowcell.Packet) {
	if b.keeping != nil {
		b.Forget(b.keeping)
		return
	}
	b.changes++
	b.flows.Forget(&s.Flow)
}

// order is Presto's rules and, where a flow's flowcells are not numbered, DRB's
// one rule: hold what is ahead.
func (b *Buffer[P]) order(f *flow[P], k *packet[P], s *flowcell.Packet) {
	id := k.id
	switch d := ahead(k.seq, f.next); {
	case d == 0:
		b.deliver(f, k, &b.stats.InOrder)
		b.regular(f)
	case d < 0:
		b.late(f, k)
		b.deliver(f, k, &b.stats.Retransmission)
	case b.tellsLoss(f, id):
		for h := f.held; h != nil && ahead(h.first().start, k.seq) < 0; h = f.held {
			b.releaseFirst(f, &b.stats.Loss)
		}
		b.deliver(f, k, &b.stats.Loss)
	default:
		// A copy of what is held waits beside it: TCP would take it for a
		// sign that what lies between is lost.
		b.hold(f, k, &s.Flow)
		b.enforce(f)
		return
	}
	b.proceed(f, id)
}

// tellsLoss reports whether a segment with this number proves that the data
// missing before it is lost. It does if it is of the same flowcell as the segment
// before the gap, since one path does not reorder, or of an older one.
func (b *Buffer[P]) tellsLoss(f *flow[P], id flowcell.Number) bool {
	return b.sameOrOlder(f, id, f.id)
}

// sameOrOlder reports whether a number is of the flowcell of another, or of an older one, in
// a flow whose numbers count.
func (b *Buffer[P]) sameOrOlder(f *flow[P], id, other flowcell.Number) bool {
	return f.cells == numbered && b.presto && cellsAhead(id, other) <= 0
}

// proceed delivers what is held and need not be any more. by is the number of
// the segment that has arrived.
func (b *Buffer[P]) proceed(f *flow[P], by flowcell.Number) {
	for f.held != nil {
		r := f.held.first()
		switch {
		case ahead(r.start, f.next) <= 0:
			f.filled(by, r, b.now)
			b.releaseFirst(f, &b.stats.Filled)
		case b.tellsLoss(f, r.id):
			b.releaseFirst(f, &b.stats.Loss)
		default:
			return
		}
	}
}

// late learns from a segment that begins below what was delivered or declared
// lost.
func (b *Buffer[P]) late(f *flow[P], k *packet[P]) {
	if f.recovering() && ahead(k.seq, f.lostTo) < 0 && ahead(k.end, f.lostFrom) > 0 {
		// If the numbers are equal, what comes soon is taken for late.
		t := b.now - f.lostSince
		if f.overtaken(k.id, f.lostID) && (k.id != f.lostID || t <= b.config.Hold) {
			b.stats.TimeoutsLate++
			if t <= b.config.Hold { // else no hold would have done
				f.delays.observe(t)
			}
		} else {
			b.stats.TimeoutsLoss++
			f.delays.quiet()
		}
		f.lostFrom = f.lostTo
	}
	if f.cells == numbered && cellsAhead(k.id, f.id) == 0 && k.id < f.id {
		f.cells = unnumbered
		b.stats.FlowsUnnumbered++
	}
}

// follow lets a flow's numbering be judged by a segment that is in order.
func (b *Buffer[P]) follow(f *flow[P], id flowcell.Number) {
	f.cells = f.cells.follow(f.id, id)
	switch f.cells {
	case numbered:
		b.stats.FlowsNumbered++
	case unnumbered:
		b.stats.FlowsUnnumbered++
	}
}

// expire deals with a run that has waited long enough.
func (b *Buffer[P]) expire(r *run[P]) {
	h := r.of
	f := b.flowOf(h)
	if r.start == f.next { // in order, Juggler's
		f.phase = normal
		b.releaseFirst(f, &b.stats.InOrder)
		return
	}
	if r.merging { // no more: the sequence was found to begin below
		r.merging = false
		b.enqueue(r, b.waits.class(alpha*f.delays.ewma))
		return
	}
	// Presto: a flowcell that still comes in is likely to follow one that does.
	if more := f.delays.ewma / beta; b.presto && f.cells == numbered && b.now-r.grown < more {
		class := b.waits.class(more)
		if b.now+b.waits.of(class) <= r.since+b.config.Hold {
			b.stats.TimeoutsPutOff++
			b.enqueue(r, class)
			return
		}
	}
	b.stats.Timeouts++
	if f.delays.vain(r.since, b.now) {
		b.stats.TimeoutsWait += b.now - r.since
	}
	f.lost(r)
	if b.config.Discipline == Juggler {
		b.releaseAll(f, &b.stats.TimedOut)
		f.phase = recovery
		return
	}
	for last := false; !last; {
		last = h.first() == r
		b.releaseFirst(f, &b.stats.TimedOut)
	}
	b.proceed(f, f.id)
}
