package resequencer

import (
	"time"

	"weft/flowcell"
)

// Buffer puts segments back in order. P is whatever the caller calls a packet;
// a Buffer only keeps it and gives it back, and keeps no reference afterwards.
//
// A Buffer is not safe for concurrent use.
type Buffer[P any] struct {
	config Config
	table  table[P]
	byAge  ring[packet[P]] // everything held, the oldest first; so is the next deadline
	free   []*packet[P]    // at most Config.TotalPackets
	now    time.Duration   // of the latest Push
	stats  Stats
}

// New returns an empty Buffer. See Config.Validate.
func New[P any](c Config) *Buffer[P] {
	b := &Buffer[P]{config: c.withDefaults()}
	b.table.init()
	b.byAge.init(nil)
	return b
}

// Push takes one TCP packet that arrived at now, which counts from any fixed
// point and does not run backwards, and appends to out whatever may be
// delivered, in order. It returns out.
//
// A segment whose distance from its flow no TCP window explains begins the flow
// anew, as a SYN does. Deadlines are Expire's: a packet that arrives after one
// but before Expire still fills its gap.
func (b *Buffer[P]) Push(s Segment, p P, now time.Duration, out []P) []P {
	b.now = max(b.now, now)
	reset := s.Flags&flowcell.FlagRST != 0
	n := s.length()
	if n == 0 && !reset {
		b.stats.Passed++
		return append(out, p)
	}
	f := b.table.get(s.Flow)
	if reset {
		if f != nil {
			out = b.release(f, all, &b.stats.Flushed, out)
			b.table.forget(f)
		}
		b.stats.Passed++
		return append(out, p)
	}
	switch {
	case f == nil:
		f, out = b.add(s.Flow, out)
		f.start(&s)
	case f.begins(&s):
		out = b.release(f, all, &b.stats.Flushed, out)
		f.start(&s)
	}
	end := s.Seq + n
	if f.arrived.see(s.Seq, end) {
		b.stats.ArrivedOutOfOrder++
	}
	if b.config.Off {
		return b.deliver(f, s.Seq, end, p, &b.stats.Passed, out)
	}
	if !plausible(s.Seq, f.next) {
		out = b.release(f, all, &b.stats.Flushed, out)
		f.next = s.Seq
	}
	switch d := ahead(s.Seq, f.next); {
	case d == 0:
		out = b.deliver(f, s.Seq, end, p, &b.stats.InOrder, out)
		return b.release(f, contiguous, &b.stats.Filled, out)
	case d < 0:
		out = b.deliver(f, s.Seq, end, p, &b.stats.Retransmission, out)
		return b.release(f, contiguous, &b.stats.Filled, out)
	}
	// A copy of what is held waits beside it: TCP would take it for a sign
	// that what lies between is lost.
	b.hold(f, f.place(s.Seq), packet[P]{p: p, flow: f, seq: s.Seq, end: end, size: s.Size, since: b.now})
	return b.enforce(f, out)
}

// Expire appends to out what has waited for Config.Hold at now, everything
// before it in its flow, and what is contiguous behind it. It returns out.
func (b *Buffer[P]) Expire(now time.Duration, out []P) []P {
	for k := b.byAge.next.of; k != nil && now-k.since >= b.config.Hold; k = b.byAge.next.of {
		f := k.flow
		f.next = k.seq // the hole is lost; what is held below it goes first
		out = b.release(f, contiguous, &b.stats.TimedOut, out)
	}
	return out
}

// NextDeadline returns when Expire has something to do, and false if it has
// not.
func (b *Buffer[P]) NextDeadline() (at time.Duration, ok bool) {
	if k := b.byAge.next.of; k != nil {
		return k.since + b.config.Hold, true
	}
	return 0, false
}

// Flush appends to out everything held, flow by flow in order, and returns
// out. The Buffer can be used on.
func (b *Buffer[P]) Flush(out []P) []P {
	for k := b.byAge.next.of; k != nil; k = b.byAge.next.of {
		out = b.release(k.flow, all, &b.stats.Flushed, out)
	}
	return out
}

// Stats returns the counters.
func (b *Buffer[P]) Stats() Stats {
	s := b.stats
	s.Flows = len(b.table.flows)
	return s
}

// add remembers a new flow, in the place of the idlest if need be.
func (b *Buffer[P]) add(key flowcell.FiveTuple, out []P) (*flow[P], []P) {
	if len(b.table.flows) >= b.config.Flows {
		idle := b.table.idlest()
		out = b.release(idle, all, &b.stats.Bound, out)
		b.table.forget(idle)
		b.stats.FlowsEvicted++
	}
	return b.table.add(key), out
}

func (b *Buffer[P]) hold(f *flow[P], at *ring[packet[P]], v packet[P]) {
	var k *packet[P]
	if n := len(b.free); n > 0 {
		k, b.free = b.free[n-1], b.free[:n-1]
	} else {
		k = new(packet[P])
	}
	*k = v
	k.bySeq.init(k)
	k.byAge.init(k)
	f.insert(k, at)
	k.byAge.insertAfter(b.byAge.prev)
	b.stats.HeldPackets++
	b.stats.HeldBytes += k.size
}

// enforce delivers early what is over a bound after f was given a packet: f's
// own, then that of the flows that wait longest.
func (b *Buffer[P]) enforce(f *flow[P], out []P) []P {
	c, s := &b.config, &b.stats
	if f.packets > c.FlowPackets || f.bytes > c.FlowBytes {
		out = b.release(f, all, &s.Bound, out)
	}
	for s.HeldPackets > c.TotalPackets || s.HeldBytes > c.TotalBytes {
		out = b.release(b.byAge.next.of.flow, all, &s.Bound, out)
	}
	s.MaxHeldPackets = max(s.MaxHeldPackets, s.HeldPackets)
	s.MaxHeldBytes = max(s.MaxHeldBytes, s.HeldBytes)
	return out
}

// extent is how much release lets go.
type extent bool

const (
	contiguous extent = false // what begins at or below next
	all        extent = true
)

// release delivers f's held packets, some or all, in order.
func (b *Buffer[P]) release(f *flow[P], what extent, cause *uint64, out []P) []P {
	for k := f.first(); k != nil && (what == all || ahead(k.seq, f.next) <= 0); k = f.first() {
		out = b.deliver(f, k.seq, k.end, k.p, cause, out)
		k.bySeq.remove()
		k.byAge.remove()
		f.packets--
		f.bytes -= k.size
		b.stats.HeldPackets--
		b.stats.HeldBytes -= k.size
		*k = packet[P]{} // no reference to the caller's packet may remain
		b.free = append(b.free, k)
	}
	return out
}

// deliver appends p to out and moves next past it.
func (b *Buffer[P]) deliver(f *flow[P], seq, end uint32, p P, cause *uint64, out []P) []P {
	f.pass(end)
	*cause++
	if f.delivered.see(seq, end) {
		b.stats.DeliveredOutOfOrder++
	}
	return append(out, p)
}
