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
	keeping *Kept[P]                // the flow of the call under way, nil if it is in flows
	kept    int                     // flows that their callers keep
	peers   *flowcell.Table[*peer[P]]
	queues  []ring[run[P]]   // by class of waits, the first to be due first; the last is Juggler's for merging
	holding ring[holding[P]] // flows that hold, those that began first before others
	pool    pool[P]

	observe func(p P, why Cause) // nil if nobody wants to know; see Observe

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

// Touch prefetches the state of a flow for which Push will be called soon, so that the
// waits for several flows overlap. It changes nothing.
func (b *Buffer[P]) Touch(flow *flowcell.FiveTuple) { b.flows.Touch(flow) }

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
		b.releaseAll(b.flowOf(h), &b.stats.Flushed)
	}
	return b.take()
}

// Stats returns the counters.
func (b *Buffer[P]) Stats() Stats {
	b.stats.peak()
	s := b.stats
	s.Flows = b.flows.Len() + b.kept
	s.FlowsEvicted = b.flows.Evicted()
	return s
}
