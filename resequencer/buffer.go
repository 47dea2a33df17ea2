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
	changes int                     // flows added or forgotten: pointers to others may have moved
	runs    []flowcell.Run[flow[P]] // of the batch under way
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
		runs:   make([]flowcell.Run[flow[P]], 0, batch),
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
	if f := b.flows.Latest(&s.Flow, b.now); f != nil {
		if b.next(f, s) {
			return append(out, p)
		}
		if b.continues(f, s, p) {
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
			s := &segments[i]
			if f != nil && b.next(f, s) {
				out = append(out, packets[i])
			} else if f == nil || !b.continues(f, s, packets[i]) {
				out = b.push(f, s, packets[i], out)
				if b.changes != unchanged {
					f = nil
				}
			}
		}
	}
	return out
}

// Touch prefetches the state of a flow for which Push will be called soon, so that the
// waits for several flows overlap. It changes nothing.
func (b *Buffer[P]) Touch(flow *flowcell.FiveTuple) { b.flows.Touch(flow) }

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

// continues takes data behind a gap that continues what is held there, if nothing else is
// to be done. It reports whether it has. It calls nothing that is not inlined, save for room
// in the pool.
func (b *Buffer[P]) continues(f *flow[P], s *flowcell.Packet, p P) bool {
	h, id, end := f.held, flowcell.Number(s.ID), s.Seq+uint32(s.Payload)
	if h == nil || ahead(s.Seq, f.next) <= 0 || s.Payload == 0 || s.Flags&special != 0 || !b.direct || b.tellsLoss(f, id) {
		return false
	}
	r := h.likely(s.Seq)
	if r == nil || r.next[0] != nil && ahead(r.next[0].start, end) <= 0 || !b.fits(h, s.Length) {
		return false
	}
	if ahead(end, h.top) > 0 {
		h.top = end
	} else {
		b.stats.ArrivedOutOfOrder++
	}
	k := b.pool.packet()
	k.set(p, end, s)
	r.extend(k, b.now)
	h.last = r
	b.add(h, 1, int(k.size))
	return true
}

// push deals with data that is next in its flow, where more is to be done than next does,
// and hands on the rest. f is the segment's flow, of which next and continues have not taken
// it; nil if that is not known or there is none.
func (b *Buffer[P]) push(f *flow[P], s *flowcell.Packet, p P, out []P) []P {
	if s.Payload == 0 && s.Flags&special == 0 {
		b.stats.Passed++
		return append(out, p)
	}
	if f == nil {
		f = b.flows.Get(&s.Flow, b.now)
		if f != nil && b.continues(f, s, p) {
			return out
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
	b.stats.ArrivedOutOfOrder++
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

// Expire appends to out the packets whose hold has ended at now, all packets before them
// in their flows, and the packets behind them that need not wait any longer. It returns
// out.
func (b *Buffer[P]) Expire(now time.Duration, out []P) []P {
	b.now = max(b.now, now)
	b.stats.peak()
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
	b.stats.peak()
	b.out = b.takeForgotten(out)
	for h := b.holding.next.of; h != nil; h = b.holding.next.of {
		b.releaseAll(b.flows.Get(&h.key, b.now), &b.stats.Flushed)
	}
	return b.take()
}

// Stats returns the counters.
func (b *Buffer[P]) Stats() Stats {
	b.stats.peak()
	s := b.stats
	s.Flows = b.flows.Len()
	s.FlowsEvicted = b.flows.Evicted()
	return s
}
