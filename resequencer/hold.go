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

// set makes k that of a segment, or super-segment, that ends at end. It assigns field by field. A
// literal would be built on the stack and copied, and the copy's wide loads would wait for the
// narrow stores before them (a store-forwarding stall).
func (k *packet[P]) set(p P, end uint32, s *flowcell.Packet) {
	k.next, k.p = nil, p
	k.seq, k.end, k.size = s.Seq, end, int32(s.Length)
	k.id, k.more = flowcell.Number(s.ID), s.MoreSegments
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
		if r = h.seek(k.seq, &to); r != nil && ahead(k.seq, r.end) <= 0 {
			r.extend(k, b.now)
		} else if r = to[0][0]; r != nil && ahead(r.start, k.end) <= 0 {
			r.prepend(k)
		} else {
			r = b.newRun(f, k)
			h.insert(r, &to)
		}
	} else {
		r.extend(k, b.now)
	}
	h.last = r
	if ahead(k.seq, f.next) > 0 { // else it waits to be merged
		f.tally.Held++
	}
	b.add(h, 1, int(k.size))
	b.join(f, r, k.id)
}

// add counts packets that h holds.
func (b *Buffer[P]) add(h *holding[P], packets, bytes int) {
	h.packets += packets
	h.bytes += bytes
	h.peer.packets += packets
	h.peer.bytes += bytes
	b.stats.HeldPackets += packets
	b.stats.HeldBytes += bytes
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
	switch cause {
	case &b.stats.Filled:
		b.stats.HoldFilled.Observe(b.now - r.since)
	case &b.stats.TimedOut:
		b.stats.HoldTimedOut.Observe(b.now - r.since)
	}
	if b.observe != nil {
		b.observeRun(r, cause)
	}
	packets, bytes := b.deliverRun(f, r)
	*cause += uint64(packets)
	b.add(h, -packets, -bytes)
	b.pool.putPackets(r.head, r.tail)
	r.due.remove()
	b.pool.putRun(r)
	if h.first() == nil {
		b.end(f)
	}
}

// deliverRun hands the packets of r up and moves next past them. It returns how much they
// are.
func (b *Buffer[P]) deliverRun(f *flow[P], r *run[P]) (packets, bytes int) {
	var none P
	out, next, last := b.out, f.next, f.id
	for k := r.head; k != nil; k = k.next {
		if k.seq == next {
			if f.cells < numbered {
				f.id = last
				b.follow(f, k.id)
			}
		} else if ahead(k.seq, next) < 0 {
			b.stats.DeliveredOutOfOrder++
		}
		if ahead(k.end, next) > 0 {
			next, last = k.end, k.id+flowcell.Number(k.more)
		}
		out = append(out, k.p)
		k.p = none
		packets++
		bytes += int(k.size)
	}
	b.out, f.next, f.id = out, next, last
	return packets, bytes
}

// pass hands a stray up.
func (b *Buffer[P]) pass(f *flow[P], k *packet[P]) {
	if ahead(k.seq, f.next) < 0 {
		b.stats.DeliveredOutOfOrder++
	}
	b.stats.Stray++
	if b.observe != nil {
		b.observe(k.p, CauseStray)
	}
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
	if b.observe != nil {
		b.observe(k.p, b.cause(cause))
	}
	b.out = append(b.out, k.p)
	b.pool.putPacket(k)
}
