package resequencer

// Cause is why a packet was delivered. The fields of Stats say more of each.
type Cause string

// The causes.
const (
	CauseInOrder        Cause = "in-order"
	CauseFilled         Cause = "filled"
	CauseTimedOut       Cause = "timed-out"
	CauseLoss           Cause = "loss"
	CauseRetransmission Cause = "retransmission"
	CauseBound          Cause = "bound"
	CauseFlushed        Cause = "flushed"
	CauseStray          Cause = "stray"
	CausePassed         Cause = "passed"
)

// Observe has f told why packets are delivered, each before the call returns that delivers it.
// Of those that were next in their flow, and held up by nothing, it is not told: most are. f
// must not call the Buffer. nil ends it.
func (b *Buffer[P]) Observe(f func(p P, why Cause)) { b.observe = f }

// cause names a counter of the Buffer's.
func (b *Buffer[P]) cause(counter *uint64) Cause {
	switch counter {
	case &b.stats.Filled:
		return CauseFilled
	case &b.stats.TimedOut:
		return CauseTimedOut
	case &b.stats.Loss:
		return CauseLoss
	case &b.stats.Retransmission:
		return CauseRetransmission
	case &b.stats.Bound:
		return CauseBound
	case &b.stats.Flushed:
		return CauseFlushed
	case &b.stats.Passed:
		return CausePassed
	}
	return CauseInOrder
}

// observeRun tells of the packets of a run.
func (b *Buffer[P]) observeRun(r *run[P], counter *uint64) {
	for k := r.head; k != nil; k = k.next {
		b.observe(k.p, b.cause(counter))
	}
}
