package resequencer

import (
	"testing"

	"weft/flowcell"
)

// traceNumbered plays a trace of Presto's receiver. Before it come two
// flowcells in order, of five segments each, which show that the sender
// numbers: so expSeq is 1000 and lastFlowcell 1 when the trace begins.
func traceNumbered(t *testing.T, c Config, list ...step) Stats {
	t.Helper()
	b := New[byte](c)
	syn := with(at(1<<32-1, 0, data(0)), flowcell.FlagSYN)
	b.Push(&syn, 0, 0, nil)
	for n := range 10 {
		s := in(uint16(n/5), uint8(n%5), data(n))
		b.Push(&s, 0, 0, nil)
	}
	if s := b.Stats(); s.FlowsNumbered != 1 || s.InOrder != 11 {
		t.Fatalf("the flow is not taken for numbered: %+v", s)
	}
	playSteps(t, b, list...)
	return b.Stats()
}

// Rule 1: S is of lastFlowcell: push up, expSeq = max(expSeq, end(S)).
func TestPresto_rule1_sameFlowcell(t *testing.T) {
	s := traceNumbered(t, Config{},
		push(1*ms, in(1, 5, data(10)), "a"),
		push(1*ms, in(1, 7, data(12)), "b"), // 11 is lost: told at once
		push(1*ms, in(1, 8, data(13)), "c"),
		push(2*ms, in(9, 0, data(11)), "d"), // retransmitted: expSeq stays
		push(3*ms, in(1, 9, data(14)), "e"))
	if s.Loss != 1 || s.HeldPackets != 0 || s.Retransmission != 1 {
		t.Errorf("%+v", s)
	}
}

// Rule 2, expSeq == start(S): in order. Push, lastFlowcell = cell(S),
// expSeq = end(S).
func TestPresto_rule2_newerInOrder(t *testing.T) {
	s := traceNumbered(t, Config{},
		push(1*ms, in(2, 0, data(10)), "a"),
		push(1*ms, in(2, 2, data(12)), "b")) // of lastFlowcell now
	if s.Loss != 1 {
		t.Errorf("%+v", s)
	}
}

// Rule 2, expSeq > start(S): a retransmission. Push.
//
// Weft departs from Presto here: lastFlowcell remains the flowcell that ends at expSeq. A
// retransmission carries the number of the time when it was sent again. With Presto's
// rule the flowcells in flight would all become older ones, which are pushed up
// unordered.
func TestPresto_rule2_newerRetransmission(t *testing.T) {
	s := traceNumbered(t, Config{},
		push(1*ms, in(7, 3, data(4)), "a"),
		push(2*ms, in(3, 0, data(15)), ""), // still held, though older than 7
		push(2*ms, in(2, 0, data(10)), "c"),
		push(2*ms, in(2, 1, data(11)), "d"),
		push(2*ms, in(2, 2, data(12)), "e"),
		push(2*ms, in(2, 3, data(13)), "f"),
		push(2*ms, in(2, 4, data(14)), "gb"))
	if s.Retransmission != 1 || s.Filled != 1 || s.Loss != 0 {
		t.Errorf("%+v", s)
	}
}

// Rule 2, expSeq < start(S): a gap at a flowcell boundary: hold.
func TestPresto_rule2_newerAheadIsHeld(t *testing.T) {
	s := traceNumbered(t, Config{},
		push(1*ms, in(3, 0, data(15)), ""),
		push(1*ms, in(3, 1, data(16)), ""),
		push(1*ms, in(2, 0, data(10)), "c"),
		push(1*ms, in(2, 1, data(11)), "d"),
		push(1*ms, in(2, 2, data(12)), "e"),
		push(1*ms, in(2, 3, data(13)), "f"),
		push(1*ms, in(2, 4, data(14)), "gab"),
		push(1*ms, in(3, 2, data(17)), "h"))
	if s.Filled != 2 || s.Loss != 0 {
		t.Errorf("%+v", s)
	}
}

// Rule 1 holds for what was held, too: when its flowcell has become the last,
// a gap inside it is loss.
func TestPresto_rule1_heldFlowcellWithLoss(t *testing.T) {
	s := traceNumbered(t, Config{},
		push(1*ms, in(3, 0, data(15)), ""),
		push(1*ms, in(3, 2, data(17)), ""), // 16 is lost
		push(1*ms, in(4, 0, data(20)), ""),
		push(1*ms, in(2, 0, at(1000, 500, data(0))), "dab"),
		push(1*ms, in(3, 3, data(18)), "e"),
		push(1*ms, in(3, 4, data(19)), "fc"))
	if s.Filled != 2 || s.Loss != 1 {
		t.Errorf("%+v", s)
	}
}

// Rule 2: when S has timed out: push, lastFlowcell = cell(S), expSeq = end(S).
func TestPresto_rule2_timedOut(t *testing.T) {
	s := traceNumbered(t, Config{Hold: 5 * ms, MinHold: 5 * ms},
		push(1*ms, in(3, 0, data(15)), ""),
		push(2*ms, in(3, 1, data(16)), ""),
		expire(6*ms-1, ""),
		expire(6*ms, "ab"),
		push(7*ms, in(3, 3, data(18)), "c"), // of lastFlowcell
		push(7*ms, in(2, 0, data(10)), "d")) // not waited for again
	if s.TimedOut != 2 || s.Loss != 1 || s.TimeoutsLate != 1 {
		t.Errorf("%+v", s)
	}
}

// Rule 3: S is of an older flowcell, late or retransmitted: push.
func TestPresto_rule3_older(t *testing.T) {
	s := traceNumbered(t, Config{Hold: 5 * ms, MinHold: 5 * ms},
		push(1*ms, in(4, 0, data(20)), ""),
		expire(6*ms, "a"),
		push(7*ms, in(2, 0, data(10)), "b"),
		push(7*ms, in(3, 0, data(15)), "c"),
		push(7*ms, in(3, 0, data(25)), "d")) // ahead, and yet older: nothing before it comes any more
	if s.Retransmission != 2 || s.Loss != 1 {
		t.Errorf("%+v", s)
	}
}

// Sequence numbers wrap, and so do those of flowcells.
func TestPresto_numbersWrap(t *testing.T) {
	b := New[byte](Config{})
	start := uint32(1<<32 - 2000)
	for n := range 100 {
		s := in(uint16(1015+n/5), uint8(n%5), at(start+100*uint32(n), 100, data(0)))
		if out := b.Push(&s, 0, 0, nil); len(out) != 1 {
			t.Fatalf("segment %d: %d delivered", n, len(out))
		}
	}
	playSteps(t, b,
		push(0, in(1015+21, 0, at(start+10500, 100, data(0))), ""),
		push(0, in(1015+20, 0, at(start+10000, 500, data(0))), "ba"))
	if s := b.Stats(); s.FlowsNumbered != 1 || s.InOrder != 101 {
		t.Errorf("%+v", s)
	}
}

// The hold is adaptive: alpha times the EWMA of what boundaries took to close.
func TestPresto_holdAdapts(t *testing.T) {
	b := New[byte](Config{Hold: 8 * ms, MinHold: 250 * us})
	f := func() *flow[byte] { k := tuple(1); return b.flows.Get(&k, 0) }
	n := 0
	for ; n < 40*quietPackets; n++ { // nothing is out of order: down to MinHold
		s := in(uint16(n/32), uint8(n%32), data(n))
		b.Push(&s, 0, 0, nil)
	}
	if got := f().delays.ewma; got > 250*us/alpha {
		t.Fatalf("after a quiet while: %v", got)
	}
	// A boundary that takes 1 ms to close, when it was waited for only 250 µs.
	cell := uint16(n / 32)
	playSteps(t, b,
		push(0, in(cell+1, 0, data(n+1)), ""),
		expire(250*us, "a"),
		push(ms, in(cell, 0, data(n)), "b"), // the original, not a retransmission
		push(2*ms, in(cell+3, 0, data(n+3)), ""),
		push(3*ms+500*us, in(cell+2, 0, data(n+2)), "dc")) // held for 2 ms now
	if s := b.Stats(); s.TimeoutsLate != 1 || s.TimedOut != 1 || s.Filled != 1 {
		t.Errorf("%+v", s)
	}
	if got := f().delays.ewma; got != 1500*us {
		t.Errorf("%v, want 1.5 ms", got)
	}
}

// A hole that turns out to have been a loss does not lengthen the hold.
func TestPresto_retransmissionIsNoDelay(t *testing.T) {
	b := New[byte](Config{Hold: 8 * ms, MinHold: 250 * us})
	playSteps(t, b,
		push(0, in(1, 0, data(1)), "a"),
		push(0, in(3, 0, data(3)), ""),
		expire(8*ms, "b"),
		push(9*ms, in(7, 0, data(2)), "c"))
	k := tuple(1)
	if f := b.flows.Get(&k, 0); f.delays.ewma >= 4*ms || f.delays.measured {
		t.Errorf("%+v", f.delays)
	}
	if s := b.Stats(); s.TimeoutsLoss != 1 || s.TimeoutsLate != 0 {
		t.Errorf("%+v", s)
	}
}

// A segment that timed out but had something merged into it within EWMA/beta
// is held on.
func TestPresto_timeoutPutOffWhileFlowcellComesIn(t *testing.T) {
	b := New[byte](Config{Hold: 16 * ms, MinHold: 250 * us})
	n := 0
	for ; n < 20*quietPackets; n++ {
		s := in(uint16(n/32), uint8(n%32), data(n))
		b.Push(&s, 0, 0, nil)
	}
	k := tuple(1)
	f := b.flows.Get(&k, 0)
	f.delays.ewma = ms // holds 2 ms
	cell := uint16(n / 32)
	playSteps(t, b,
		push(0, in(cell+1, 0, data(n+1)), ""),
		push(1900*us, in(cell+1, 1, data(n+2)), ""),
		expire(2*ms, ""), // grew 100 µs ago: 500 µs more
		expire(2499*us, ""),
		expire(2500*us, "ab"))
	if s := b.Stats(); s.TimeoutsPutOff != 1 {
		t.Errorf("%+v", s)
	}
}

// In IPv6 all segments of a flowcell have one number. A segment that fills a hole before
// others of its flowcell was sent again: the time that took is no path's delay.
func TestPresto_numbersOfIPv6(t *testing.T) {
	b := New[byte](Config{Hold: 8 * ms, MinHold: 250 * us})
	label := func(cell uint16, n int) flowcell.Packet { return in(cell, 0, data(n)) }
	for n := range 1000 * 5 {
		s := label(uint16(n/5), n)
		b.Push(&s, 0, 0, nil)
	}
	k := tuple(1)
	was := b.flows.Get(&k, 0).delays.ewma
	playSteps(t, b,
		push(1*ms, label(1000, 5000), "a"),
		push(1*ms, label(1000, 5002), "b"), // 5001 is lost: told at once
		push(1*ms, label(1002, 5006), ""),  // the end of 1000, 1001 and the beginning of 1002 are missing
		push(1*ms, label(1000, 5003), "d"),
		push(1*ms, label(1001, 5004), "e"),
		push(1*ms+200*us, label(1002, 5005), "fc"), // sent again
	)
	f := b.flows.Get(&k, 0)
	if s := b.Stats(); s.FlowsNumbered != 1 || s.Loss != 1 || s.Filled != 1 || s.FlowsUnnumbered != 0 {
		t.Errorf("%+v", s)
	}
	if f.delays.measured || f.delays.ewma > was {
		t.Errorf("taken for a delay: %+v, was %v", f.delays, was)
	}
	playSteps(t, b,
		push(2*ms, label(1004, 5009), ""),
		push(2*ms, label(1003, 5008), ""),
		push(2*ms+100*us, label(1002, 5007), "cba")) // overtaken
	if f = b.flows.Get(&k, 0); !f.delays.measured {
		t.Errorf("not taken for a delay: %+v", f.delays)
	}
}

// A hole that was given up and is filled by the flowcell behind it was a loss.
func TestPresto_retransmissionInIPv6IsNoDelay(t *testing.T) {
	s := traceNumbered(t, Config{Hold: 8 * ms, MinHold: 250 * us},
		push(0, in(3, 0, data(12)), ""),
		expire(8*ms, "a"),
		push(8*ms, in(3, 0, data(11)), "b"))
	if s.TimeoutsLoss != 1 || s.TimeoutsLate != 0 {
		t.Errorf("%+v", s)
	}
}

// Not believed: a counter, a constant, and a sender whose flowcells change
// paths.
func TestPresto_unnumbered(t *testing.T) {
	for name, id := range map[string]func(n int) uint16{
		"counter": func(n int) uint16 { return uint16(n) },
		"zero":    func(int) uint16 { return 0 },
		"by two":  func(n int) uint16 { return uint16(2 * n) },
		"label":   func(int) uint16 { return 64 * 77 },
		"rehash":  func(n int) uint16 { return uint16(n/7) * 0x9e37 },
	} {
		b := New[int](Config{})
		for n := range 1000 {
			s := data(n)
			s.ID = id(n)
			b.Push(&s, n, 0, nil)
		}
		if s := b.Stats(); s.FlowsNumbered != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	s := traceNumbered(t, Config{},
		push(0, in(2, 0, data(10)), "a"),
		push(0, in(2, 2, data(12)), "b"), // taken for loss
		push(0, in(2, 1, data(11)), "c"), // it was not: this sender is not believed again
		push(0, in(2, 4, data(14)), ""),
		push(0, in(2, 3, data(13)), "ed"))
	if s.FlowsUnnumbered != 1 || s.Loss != 1 || s.Filled != 1 {
		t.Errorf("%+v", s)
	}
}
