package resequencer

import "weft/flowcell"

// packet is a segment on its way through the Buffer.
type packet[P any] struct {
	next     *packet[P]
	seq, end uint32
	size     int32
	id       flowcell.Number // of the first segment
	more     uint8           // segments behind it
	p        P
}

// hold keeps a segment that begins above f's next, or at it.
func (b *Buffer[P]) hold(f *flow[P], k *packet[P], key *flowcell.FiveTuple) {
	h := f.held
	if h == nil {
		h = b.begin(f, key)
	}
	if ahead(k.end, h.top) > 0 {
		h.top = k.end
	}
	r := h.likely(k.seq)
	if r == nil {
		var to [levels]*links[P]
		r = h.seek(k.seq, &to)
		if r == nil || ahead(k.seq, r.end) > 0 {
			if r = to[0][0]; r == nil || ahead(r.start, k.end) > 0 {
				r = b.newRun(f, k)
				h.insert(r, &to)
			} else {
				r.prepend(k)
				b.add(h, r, int(k.size))
			}
			h.last = r
			b.join(f, r, k.id)
			return
		}
	}
	b.extend(h, r, k)
	b.join(f, r, k.id)
}

// extend adds k to r, within or behind which it begins.
func (b *Buffer[P]) extend(h *holding[P], r *run[P], k *packet[P]) {
	r.append(k)
	if cellsAhead(k.id, r.id) == 0 {
		r.grown = b.now
	}
	h.last = r
	b.add(h, r, int(k.size))
}

// add counts a packet of r.
func (b *Buffer[P]) add(h *holding[P], r *run[P], size int) {
	r.packets++
	r.bytes += size
	h.packets++
	h.bytes += size
	h.peer.packets++
	h.peer.bytes += size
	b.stats.HeldPackets++
	b.stats.HeldBytes += size
}

// join merges r with the runs behind it that it now reaches. The older run has
// waited for all that was missing before both, so r takes its place in the queue.
// by is the number of the segment that has closed the gap.
func (b *Buffer[P]) join(f *flow[P], r *run[P], by flowcell.Number) {
	for x := r.next[0]; x != nil && ahead(x.start, r.end) <= 0; x = r.next[0] {
		f.filled(by, x, b.now)
		r.of.removeNext(r)
		r.join(x)
		if x.since < r.since {
			r.since, r.at, r.merging = x.since, x.at, x.merging
			r.due.remove()
			r.due.insertAfter(&x.due)
		}
		if r.of.last == x {
			r.of.last = r
		}
		x.due.remove()
		b.pool.putRun(x)
	}
}

func (b *Buffer[P]) newRun(f *flow[P], k *packet[P]) *run[P] {
	r := b.pool.run()
	r.start, r.end, r.id = k.seq, k.end, k.id
	r.head, r.tail = k, k
	r.packets, r.bytes = 0, 0
	b.add(f.held, r, int(k.size))
	r.of = f.held
	r.since, r.grown = b.now, b.now
	r.merging = k.seq == f.next
	if r.merging {
		b.enqueue(r, b.waits.n)
	} else {
		b.enqueue(r, b.waits.class(alpha*f.delays.ewma))
	}
	return r
}

// enqueue makes r wait from now on. The last class is that of data in order.
func (b *Buffer[P]) enqueue(r *run[P], class int) {
	if class == b.waits.n {
		r.at = b.now + b.config.Merge
	} else {
		r.at = b.now + b.waits.of(class)
	}
	r.due.remove()
	r.due.insertAfter(b.queues[class].prev)
}

// releaseAll delivers all that is held of f.
func (b *Buffer[P]) releaseAll(f *flow[P], cause *uint64) {
	for f.held != nil {
		b.releaseFirst(f, cause)
	}
}

// releaseFirst delivers the first run of f, which has one.
func (b *Buffer[P]) releaseFirst(f *flow[P], cause *uint64) {
	h := f.held
	r := h.first()
	h.removeFirst()
	h.packets -= r.packets
	h.bytes -= r.bytes
	h.peer.packets -= r.packets
	h.peer.bytes -= r.bytes
	b.stats.HeldPackets -= r.packets
	b.stats.HeldBytes -= r.bytes
	switch cause {
	case &b.stats.Filled:
		b.stats.HoldFilled.Observe(b.now - r.since)
	case &b.stats.TimedOut:
		b.stats.HoldTimedOut.Observe(b.now - r.since)
	}
	for k := r.head; k != nil; {
		next := k.next
		b.deliver(f, k, cause)
		k = next
	}
	r.due.remove()
	b.pool.putRun(r)
	if h.first() == nil {
		b.end(f)
	}
}

// pass hands a stray up.
func (b *Buffer[P]) pass(f *flow[P], k *packet[P]) {
	if ahead(k.seq, f.next) < 0 {
		b.stats.DeliveredOutOfOrder++
	}
	b.stats.Stray++
	b.out = append(b.out, k.p)
	b.pool.putPacket(k)
}

// deliver hands a segment up and moves next past it.
func (b *Buffer[P]) deliver(f *flow[P], k *packet[P], cause *uint64) {
	if k.seq == f.next {
		if f.cells < numbered {
			b.follow(f, k.id)
		}
	} else if ahead(k.seq, f.next) < 0 {
		b.stats.DeliveredOutOfOrder++
	}
	if ahead(k.end, f.next) > 0 {
		f.next, f.id = k.end, k.id+flowcell.Number(k.more)
	}
	*cause++
	b.out = append(b.out, k.p)
	b.pool.putPacket(k)
}
