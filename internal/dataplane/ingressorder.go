package dataplane

import (
	"time"

	"weft/flowcell"
	"weft/resequencer"
)

// push gives the batch to the resequencer.
func (in *Ingress[P]) push(now time.Duration) {
	if len(in.marked) > 0 {
		in.marks(in.marked)
		in.marked = in.marked[:0]
	}
	if len(in.acked) > 0 {
		in.acks(in.acked)
		in.acked = in.acked[:0]
	}
	in.ready = in.reseq.PushBatch(in.segments, in.packets, now, in.ready)
	if in.handover != nil {
		in.handover.passed(func(flow *flowcell.FiveTuple, upTo uint32) {
			in.ready = in.datagrams.GiveUp(flow, upTo, in.ready)
		})
	}
	in.segments = in.segments[:0]
	clear(in.packets)
	in.packets = in.packets[:0]
}

// expire is the timer's work.
func (in *Ingress[P]) expire() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.release(in.clock.Now(), false)
}

// release delivers what is due and sets the timer for what is not. It delivers under
// the lock, so that what the reader and the timer release stays in order. drained says that
// the reader has found nothing more in the source.
func (in *Ingress[P]) release(now time.Duration, drained bool) {
	if in.closed {
		return
	}
	arrived := len(in.ready)
	in.ready = in.reseq.Expire(now, in.ready)
	if in.datagrams != nil {
		in.ready = in.datagrams.Expire(now, in.ready)
	}
	expired := len(in.ready) > arrived
	in.deliver()
	if in.handover != nil {
		in.handover.settle(expired, drained, now)
	}
	if at, ok := in.nextDeadline(); ok {
		in.timer.Reset(at - now)
	} else {
		in.timer.Stop()
	}
}

func (in *Ingress[P]) nextDeadline() (at time.Duration, ok bool) {
	at, ok = in.reseq.NextDeadline()
	if in.datagrams == nil {
		return at, ok
	}
	if d, also := in.datagrams.NextDeadline(); also && (!ok || d < at) {
		return d, true
	}
	return at, ok
}

// divide has in receive what a divider diverts.
func (in *Ingress[P]) divide(d Divider, c resequencer.Config) {
	in.datagrams = resequencer.New[P](datagramOrder(c))
	in.handover = newHandover(d, in.reseq, in.datagrams)
}

func (in *Ingress[P]) deliver() {
	if len(in.ready) == 0 {
		return
	}
	if in.seen != nil {
		in.seen.delivered(in.ready, in.clock.Now())
	}
	merged := in.to.Deliver(in.ready)
	in.stats.Merged += uint64(merged)
	in.stats.Delivered += uint64(len(in.ready) - merged)
	clear(in.ready)
	in.ready = in.ready[:0]
}
