package qcn

import (
	"net/netip"
	"testing"
	"time"
)

func flowTo(port uint16) Flow {
	return Flow{netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 1}), 40_000), netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 2}), port)}
}

func mustReactions(t *testing.T) *Reactions {
	t.Helper()
	r, err := NewReactions(Config{Floor: mbit, Limit: 1000 * mbit})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A message is believed only if it is about what a connection of this host has in flight, or
// had a window ago, also where the numbers wrap around.
func TestReactions_believesWhatIsInFlight(t *testing.T) {
	for _, una := range []uint32{5_000_000, 0, 1<<32 - 100_000, 1<<32 - 1} {
		for _, c := range []struct {
			seq      uint32
			level    int
			believed bool
		}{
			{una, 20, true}, {una + 200_000 - 1, 20, true}, {una - 1, 20, true}, {una - 200_000, 20, true},
			{una + 200_000, 20, false}, {una - 200_001, 20, false}, {una + 1<<31, 20, false}, {una, 0, false}, {una, -1, false},
		} {
			r := mustReactions(t)
			r.Hear(Message{flowTo(80), c.seq, c.level})
			r.Hear(Message{flowTo(81), c.seq, c.level})
			r.Look(0, func(f Flow) (Connection, bool) {
				return Connection{Una: una, Next: una + 200_000, Rate: 100 * mbit}, f == flowTo(80)
			})
			rate, limited := r.Rate(flowTo(80))
			want := Stats{Stale: 1, Unknown: 1}
			if c.believed {
				want = Stats{Believed: 1, Unknown: 1}
			}
			if limited != c.believed || c.believed && !near(rate, 100*mbit*(1-20./128)) || r.Stats() != want {
				t.Errorf("una %d, %+v: limited %v to %g; %+v", una, c, limited, rate/mbit, r.Stats())
			}
		}
	}
	r := mustReactions(t)
	r.Hear(Message{flowTo(80), 7, 63}) // nothing is in flight
	r.Look(0, func(Flow) (Connection, bool) { return Connection{Una: 7, Next: 7}, true })
	if r.Len() != 0 || r.Stats().Stale != 1 {
		t.Errorf("an idle connection was slowed: %+v", r.Stats())
	}
}

// A message that comes late is believed if its packet was in flight in the round before.
func TestReactions_believesWhatWasInFlight(t *testing.T) {
	r := mustReactions(t)
	una := uint32(1<<32 - 5000)
	state := func(Flow) (Connection, bool) { return Connection{Una: una, Next: una + 1000, Rate: 100 * mbit}, true }
	r.Hear(Message{flowTo(80), una, 1})
	r.Look(0, state)
	first := una
	una += 10_000
	r.Hear(Message{flowTo(80), first + 1000, 1})
	r.Hear(Message{flowTo(80), first - 1, 1})
	r.Look(0, state)
	if want := (Stats{Believed: 2, Stale: 1}); r.Stats() != want {
		t.Errorf("%+v, want %+v", r.Stats(), want)
	}
	una += 10_000
	r.Look(0, state)
	r.Hear(Message{flowTo(80), first + 1000, 1})
	r.Look(0, state)
	if want := (Stats{Believed: 2, Stale: 2}); r.Stats() != want {
		t.Errorf("two rounds later: %+v, want %+v", r.Stats(), want)
	}
}

// Of the messages about what is in flight at a time the strongest alone lowers the rate, in
// whatever order they come; one about what was sent afterwards lowers it again.
func TestReactions_oneCutAWindow(t *testing.T) {
	r := mustReactions(t)
	c := Connection{Una: 1<<32 - 500, Next: 500, Rate: 100 * mbit}
	state := func(Flow) (Connection, bool) { return c, true }
	for _, level := range []int{10, 32, 20} {
		r.Hear(Message{flowTo(80), c.Una + uint32(level), level})
	}
	r.Look(0, state)
	r.Hear(Message{flowTo(80), 499, 63})
	r.Look(0, state)
	if rate, _ := r.Rate(flowTo(80)); !near(rate, 75*mbit) || r.Stats() != (Stats{Believed: 1, Answered: 3}) {
		t.Errorf("%g Mbit/s, want 75; %+v", rate/mbit, r.Stats())
	}
	c.Next = 501
	r.Hear(Message{flowTo(80), 500, 32})
	r.Look(0, state)
	if rate, _ := r.Rate(flowTo(80)); !near(rate, 75*75./100*mbit) {
		t.Errorf("%g Mbit/s", rate/mbit)
	}
}

// Of a connection whose acknowledgements overtake the messages by far, the first message has it
// watched, and a later one is believed: if it is about what was in flight since, in late bytes.
// What nobody sends messages about any more is forgotten.
func TestReactions_overtakenMessages(t *testing.T) {
	r := mustReactions(t)
	una := uint32(1 << 20)
	state := func(f Flow) (Connection, bool) {
		return Connection{Una: una, Next: una + 1000, Rate: 100 * mbit}, f == flowTo(80)
	}
	round := func(now time.Duration, ms ...Message) {
		for _, m := range ms {
			r.Hear(m)
		}
		r.Look(now, state)
		una += 1 << 20
	}
	round(0, Message{flowTo(80), una - 500_000, 5})
	if r.Len() != 0 || !r.Known(flowTo(80)) || r.Idle() || r.Stats().Stale != 1 {
		t.Fatalf("%+v", r.Stats())
	}
	for port := range maxWatched + 10 { // no such connections
		r.Hear(Message{flowTo(uint16(1000 + port)), 0, 5})
	}
	round(1, Message{flowTo(80), una - 1<<20 - 1, 5}) // one before what was in flight at first
	if r.Len() != 0 || len(r.others) != 1 {
		t.Fatalf("%d flows are limited, %d watched", r.Len(), len(r.others))
	}
	seq := una - 2<<20 + 5 // in flight in the round before
	round(2, Message{flowTo(80), seq + 1<<20, 5})
	if r.Len() != 1 || len(r.others) != 0 {
		t.Fatalf("a late message is not believed: %+v", r.Stats())
	}
	una += late // too late
	round(3, Message{flowTo(80), una - late/2, 5})
	if s := r.Stats(); s.Believed != 1 {
		t.Errorf("%+v", s)
	}
	q := mustReactions(t)
	q.Hear(Message{flowTo(80), una - 500_000, 5})
	q.Look(0, state)
	q.Look(watchFor, state)
	if q.Idle() {
		t.Error("a watched flow is forgotten early")
	}
	q.Look(watchFor+1, state)
	if !q.Idle() {
		t.Error("a watched flow is not forgotten")
	}
}

// Reaction points end with their connections and when the rate is back; there are no more than
// MaxReactions, and no more messages wait than maxHeard.
func TestReactions_areBounded(t *testing.T) {
	r := mustReactions(t)
	alive := func(Flow) (Connection, bool) { return Connection{Next: 1000, Rate: 100 * mbit}, true }
	now := time.Duration(0)
	for port := range MaxReactions + 10 {
		r.Hear(Message{flowTo(uint16(port)), 1, 63})
		now += time.Microsecond
		r.Look(now, alive)
	}
	if _, limited := r.Rate(flowTo(9)); limited || r.Len() != MaxReactions || r.Stats().Evicted != 10 {
		t.Errorf("%d flows are limited; %+v", r.Len(), r.Stats())
	}
	for range maxHeard + 5 {
		r.Hear(Message{Flow: flowTo(1)})
	}
	if len(r.heard) != maxHeard || r.Stats().Overflow != 5 {
		t.Errorf("%d messages wait; %+v", len(r.heard), r.Stats())
	}
	asked := make(map[Flow]bool)
	r.Flows(func(f Flow) { asked[f] = true })
	if len(asked) != MaxReactions+1 || !asked[flowTo(1)] {
		t.Errorf("%d flows are asked for", len(asked))
	}
	r.Look(now, func(f Flow) (Connection, bool) { return Connection{}, f != flowTo(100) })
	if r.Stats().Ended != 1 || r.Len() != MaxReactions-1 {
		t.Errorf("%d flows are limited; %+v", r.Len(), r.Stats())
	}
	sent := uint64(0)
	for ; r.Len() > 0 && now < time.Minute; now += 5 * time.Millisecond {
		r.Look(now, func(Flow) (Connection, bool) { return Connection{Sent: sent}, true })
		sent += 100_000
	}
	if s := r.Stats(); s.Recovered != MaxReactions-1 {
		t.Errorf("%d flows stay limited; %+v", r.Len(), s)
	}
}
