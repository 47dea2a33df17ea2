package resequencer

import (
	"time"

	"weft/flowcell"
)

// special are the flags that are not those of plain data.
const special = flowcell.FlagSYN | flowcell.FlagFIN | flowcell.FlagRST

// Push takes one packet that arrived at now, which counts from any fixed point and does
// not run backwards. It appends to out all packets that may be delivered now, in order,
// and returns out. It keeps no reference to s.
//
// A segment that is further from its flow than its sender can be is delivered at once.
// Only several of them in a row make the flow continue there. A packet that is not TCP is
// delivered at once. Only Expire enforces deadlines: a packet that arrives after a
// deadline but before Expire still fills its gap.
func (b *Buffer[P]) Push(s *flowcell.Packet, p P, now time.Duration, out []P) []P {
	b.now = max(b.now, now)
	if f := b.flows.Latest(&s.Flow, b.now); f != nil {
		if b.next(f, s) {
			return append(out, p)
		}
		switch b.beside(f, s, p) {
		case delivered:
			return append(out, p)
		case held:
			return out
		}
		return b.push(f, s, p, out)
	}
	return b.push(nil, s, p, out)
}

// batch is how many packets PushBatch looks up at once.
const batch = 64

// PushBatch is Push for packets that arrived together. segments[i] describes packets[i].
// It looks up all their flows first, which is faster for many packets.
func (b *Buffer[P]) PushBatch(segments []flowcell.Packet, packets []P, now time.Duration, out []P) []P {
	b.now = max(b.now, now)
	for len(segments) > 0 {
		n := min(len(segments), batch)
		out = b.pushRuns(segments[:n], packets[:n], out)
		segments, packets = segments[n:], packets[n:]
	}
	return out
}

func (b *Buffer[P]) pushRuns(segments []flowcell.Packet, packets []P, out []P) []P {
	b.runs = b.flows.GetRuns(segments, b.now, b.runs[:0])
	unchanged, i := b.changes, 0
	for _, r := range b.runs {
		f := r.Value
		if b.changes != unchanged {
			f = nil
		}
		for end := i + r.Packets; i < end; i++ {
			s, p, what := &segments[i], packets[i], undecided
			if f != nil {
				if b.next(f, s) {
					out = append(out, p)
					continue
				}
				what = b.beside(f, s, p)
			}
			switch what {
			case delivered:
				out = append(out, p)
			case undecided:
				out = b.push(f, s, p, out)
				if b.changes != unchanged {
					f = nil
				}
			}
		}
	}
	return out
}

// next takes data that is next in its flow if nothing else is to be done. It reports
// whether it has. It is the commonest case, and small enough to be inlined.
func (b *Buffer[P]) next(f *flow[P], s *flowcell.Packet) bool {
	if s.Seq != f.next || s.Payload == 0 || s.Flags&special != 0 || f.held != nil ||
		f.cells < numbered || f.quiet == quietPackets-1 || !b.direct {
		return false
	}
	f.next += uint32(s.Payload)
	f.id = flowcell.Number(s.ID) + flowcell.Number(s.MoreSegments)
	f.quiet++
	b.stats.InOrder++
	return true
}

// decision is what beside has done with a packet.
type decision uint8

const (
	undecided decision = iota // nothing
	delivered                 // it is next, its caller delivers it
	held
)

// beside takes the usual data of a flow that holds some: what is next, but does not reach
// what is held, and what continues what is held. It calls nothing that is not inlined, save
// for room in the pool.
func (b *Buffer[P]) beside(f *flow[P], s *flowcell.Packet, p P) decision {
	h := f.held
	if h == nil || s.Payload == 0 || s.Flags&special != 0 || !b.direct {
		return undecided
	}
	id, end, d := flowcell.Number(s.ID), s.Seq+uint32(s.Payload), ahead(s.Seq, f.next)
	if d == 0 {
		r, last := h.first(), id+flowcell.Number(s.MoreSegments)
		if ahead(r.start, end) <= 0 || f.cells < numbered || f.quiet == quietPackets-1 || b.sameOrOlder(f, r.id, last) {
			return undecided
		}
		f.next, f.id = end, last
		f.quiet++
		b.stats.InOrder++
		b.outOfOrder(f)
		return delivered
	}
	if d < 0 || b.tellsLoss(f, id) {
		return undecided
	}
	r := h.likely(s.Seq)
	if r == nil || r.next[0] != nil && ahead(r.next[0].start, end) <= 0 || !b.fits(h, s.Length) {
		return undecided
	}
	if ahead(end, h.top) > 0 {
		h.top = end
	} else {
		b.outOfOrder(f)
	}
	f.tally.Held++
	k := b.pool.packet()
	k.set(p, end, s)
	r.extend(k, b.now)
	h.last = r
	b.add(h, 1, int(k.size))
	return held
}

// push takes what next and beside leave, and hands on what is not the next data of its flow.
// f is the segment's flow, nil if that is not known or there is none.
func (b *Buffer[P]) push(f *flow[P], s *flowcell.Packet, p P, out []P) []P {
	if s.Payload == 0 && s.Flags&special == 0 {
		b.stats.Passed++
		return append(out, p)
	}
	if f == nil && b.keeping == nil {
		if f = b.flows.Get(&s.Flow, b.now); f != nil {
			switch b.beside(f, s, p) {
			case delivered:
				return append(out, p)
			case held:
				return out
			}
		}
	}
	if f == nil || s.Seq != f.next || s.Flags&special != 0 || !b.direct {
		return b.irregular(f, s, p, out)
	}
	id, end := flowcell.Number(s.ID), s.Seq+uint32(s.Payload)
	if f.cells < numbered {
		b.follow(f, id)
	}
	f.next, f.id = end, id+flowcell.Number(s.MoreSegments)
	b.regular(f)
	b.stats.InOrder++
	out = append(out, p)
	if f.held == nil {
		return out
	}
	b.outOfOrder(f)
	if r := f.held.first(); ahead(r.start, end) > 0 && !b.tellsLoss(f, r.id) {
		return out
	}
	b.stats.peak()
	b.out = out
	b.proceed(f, id)
	return b.take()
}

// take returns what the call under way delivers.
func (b *Buffer[P]) take() []P {
	out := b.out
	b.out = nil
	return out
}

// regular takes note of a segment in order. It is small enough to be inlined.
func (b *Buffer[P]) regular(f *flow[P]) {
	if f.quiet++; f.quiet == quietPackets {
		b.calm(f)
	}
}

// calm takes note that quietPackets segments of a flow were in order.
func (b *Buffer[P]) calm(f *flow[P]) {
	f.quiet = 0
	f.established = true
	f.delays.quiet()
	f.pace.measure(f.next, b.now, b.config.Hold)
}
