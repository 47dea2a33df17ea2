package resequencer

import (
	"time"

	"weft/flowcell"
)

// Buffer puts segments back in order. P is the caller's type for a packet; a Buffer only
// keeps it and gives it back, and keeps no reference afterwards.
//
// A Buffer is not safe for concurrent use.
type Buffer[P any] struct {
	config Config
	direct bool // what is in order is delivered at once
	presto bool
	waits  waits
	now    time.Duration // the latest that was told

	flows   *flowcell.Table[flow[P]]
	changes int // flows added or forgotten: pointers to others may have moved
	found   []*flow[P]
	peers   *flowcell.Table[*peer[P]]
	queues  []ring[run[P]]   // by class of waits, the first to be due first; the last is Juggler's for merging
	holding ring[holding[P]] // flows that hold, those that began first before others
	pool    pool[P]

	out       []P // of the call under way
	forgotten []P // of flows that Resume has forgotten, to be delivered
	stats     Stats
}

// New returns an empty Buffer. c must pass Config.Validate.
func New[P any](c Config) *Buffer[P] {
	c = c.withDefaults()
	b := &Buffer[P]{
		config: c,
		direct: c.Discipline == Presto || c.Discipline == Sequence,
		presto: c.Discipline == Presto,
		waits:  newWaits(c.MinHold, c.Hold),
		found:  make([]*flow[P], batch),
	}
	b.flows = flowcell.NewTable(flowcell.TableConfig[flow[P]]{
		Capacity: c.Flows,
		Seed:     c.Seed,
		Rank:     (*flow[P]).rank,
		Evict:    b.evict,
	})
	b.peers = flowcell.NewTable(flowcell.TableConfig[*peer[P]]{
		Capacity: c.Flows,
		Seed:     c.Seed,
		Rank:     peerRank[P],
		Evict:    b.evictPeer,
	})
	b.queues = make([]ring[run[P]], b.waits.n+1)
	for i := range b.queues {
		b.queues[i].init(nil)
	}
	b.holding.init(nil)
	b.pool.rng = c.Seed | 1
	return b
}

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
	return b.push(nil, s, p, out)
}

// batch is how many flows PushBatch looks up at once.
const batch = 64

// PushBatch is Push for packets that arrived together. segments[i] describes packets[i].
// It looks up all their flows first, which is faster for many packets.
func (b *Buffer[P]) PushBatch(segments []flowcell.Packet, packets []P, now time.Duration, out []P) []P {
	b.now = max(b.now, now)
	for len(segments) > 0 {
		n := min(len(segments), batch)
		b.flows.GetBatch(segments[:n], b.now, b.found)
		unchanged := b.changes
		for i := range n {
			f := b.found[i]
			if b.changes != unchanged {
				f = nil
			}
			out = b.push(f, &segments[i], packets[i], out)
		}
		segments, packets = segments[n:], packets[n:]
	}
	return out
}

// Touch prefetches the state of a flow for which Push will be called soon, so that the
// waits for several flows overlap. It changes nothing.
func (b *Buffer[P]) Touch(flow *flowcell.FiveTuple) { b.flows.Touch(flow) }

// push deals with the commonest cases: data that is next in its flow, and data
// behind a gap that continues what is held there. f is the segment's flow, nil
// if that is not known or there is none.
func (b *Buffer[P]) push(f *flow[P], s *flowcell.Packet, p P, out []P) []P {
	if s.Payload == 0 && s.Flags&special == 0 {
		b.stats.Passed++
		return append(out, p)
	}
	if f == nil {
		f = b.flows.Get(&s.Flow, b.now)
	}
	if f == nil || s.Flags&special != 0 || !b.direct {
		return b.irregular(f, s, p, out)
	}
	id, end := flowcell.Number(s.ID), s.Seq+uint32(s.Payload)
	h := f.held
	if s.Seq == f.next {
		if f.cells < numbered {
			b.follow(f, id)
		}
		f.next, f.id = end, id+flowcell.Number(s.MoreSegments)
		b.regular(f)
		b.stats.InOrder++
		out = append(out, p)
		if h == nil {
			return out
		}
		b.stats.ArrivedOutOfOrder++
		if r := h.first(); ahead(r.start, end) > 0 && !b.tellsLoss(f, r.id) {
			return out
		}
		b.out = out
		b.proceed(f, id)
		return b.take()
	}
	if h != nil && ahead(s.Seq, f.next) > 0 && !b.tellsLoss(f, id) {
		if r := h.likely(s.Seq); r != nil && (r.next[0] == nil || ahead(r.next[0].start, end) > 0) {
			if ahead(end, h.top) > 0 {
				h.top = end
			} else {
				b.stats.ArrivedOutOfOrder++
			}
			b.extend(h, r, b.pool.packet(p, s.Seq, end, s))
			if !b.within(h) {
				b.out = out
				b.enforce(f)
				return b.take()
			}
			b.stats.peak()
			return out
		}
	}
	return b.irregular(f, s, p, out)
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

// Expire appends to out the packets whose hold has ended at now, all packets before them
// in their flows, and the packets behind them that need not wait any longer. It returns
// out.
func (b *Buffer[P]) Expire(now time.Duration, out []P) []P {
	b.now = max(b.now, now)
	b.out = b.takeForgotten(out)
	for r := b.earliest(); r != nil && r.at <= b.now; r = b.earliest() {
		b.expire(r)
	}
	return b.take()
}

func (b *Buffer[P]) takeForgotten(out []P) []P {
	out = append(out, b.forgotten...)
	clear(b.forgotten)
	b.forgotten = b.forgotten[:0]
	return out
}

// NextDeadline returns when Expire has something to do. ok is false if nothing waits.
func (b *Buffer[P]) NextDeadline() (at time.Duration, ok bool) {
	if r := b.earliest(); r != nil {
		return r.at, true
	}
	return 0, false
}

// earliest returns the run that is due first, nil if none waits.
func (b *Buffer[P]) earliest() (first *run[P]) {
	if b.stats.HeldPackets == 0 {
		return nil
	}
	for i := range b.queues {
		if r := b.queues[i].next.of; r != nil && (first == nil || r.at < first.at) {
			first = r
		}
	}
	return first
}

// Flush appends to out everything held, flow by flow in order, and returns out.
// The Buffer remains usable.
func (b *Buffer[P]) Flush(out []P) []P {
	b.out = b.takeForgotten(out)
	for h := b.holding.next.of; h != nil; h = b.holding.next.of {
		b.releaseAll(b.flows.Get(&h.key, b.now), &b.stats.Flushed)
	}
	return b.take()
}

// Stats returns the counters.
func (b *Buffer[P]) Stats() Stats {
	s := b.stats
	s.Flows = b.flows.Len()
	s.FlowsEvicted = b.flows.Evicted()
	return s
}
