package resequencer

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/flowcell"
)

// The picture of the package's comment.
func TestPush_holdsUntilGapFilled(t *testing.T) {
	_, s := script(t, Config{},
		push(0, data(1), "a"),
		push(1*ms, data(3), ""),
		push(2*ms, data(4), ""),
		push(3*ms, data(2), "dbc"),
		push(4*ms, data(5), "e"),
		push(5*ms, data(7), ""),
		push(6*ms, data(8), ""),
		expire(15*ms-1, ""),
		expire(15*ms, "fg"),
		push(16*ms, data(6), "h"),
		push(17*ms, data(9), "i"))
	want := Stats{InOrder: 4, Filled: 2, TimedOut: 2, Retransmission: 1, TimeoutsLoss: 1,
		Timeouts: 1, TimeoutsWait: 10 * ms,
		ArrivedOutOfOrder: 2, DeliveredOutOfOrder: 1,
		MaxHeldPackets: 2, MaxHeldBytes: 280, Flows: 1}
	want.HoldFilled.Observe(2 * ms)
	want.HoldTimedOut.Observe(10 * ms)
	if s != want {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
}

func TestPush_passesWhatHasNoSequenceSpace(t *testing.T) {
	ack := at(900, 0, data(0))
	_, s := script(t, Config{},
		push(0, ack, "a"), // does not begin a flow
		push(0, data(1), "b"),
		push(0, ack, "c"),
		push(0, data(2), "d"))
	if s.Passed != 2 || s.Flows != 1 || s.ArrivedOutOfOrder != 0 {
		t.Errorf("%+v", s)
	}
}

func TestPush_firstOfUnknownFlowIsDelivered(t *testing.T) {
	script(t, Config{}, push(0, data(7), "a"), push(0, data(9), ""), push(0, data(8), "cb"))
}

func TestPush_synBeginsFlow(t *testing.T) {
	syn := with(at(100, 0, data(0)), flowcell.FlagSYN)
	_, s := script(t, Config{},
		push(0, syn, "a"),
		push(0, at(201, 100, data(0)), ""),
		push(0, at(101, 100, data(0)), "cb"),
		push(0, syn, "d"), // a late copy: does not turn the flow back
		push(0, at(301, 100, data(0)), "e"),
		push(0, at(501, 100, data(0)), ""),
		push(0, with(at(7000, 0, data(0)), flowcell.FlagSYN), "fg"), // a new connection
		push(0, at(7101, 100, data(0)), ""),
		push(0, at(7001, 100, data(0)), "ih"))
	if s.Flushed != 1 || s.Retransmission != 1 {
		t.Errorf("%+v", s)
	}
}

func TestPush_synWithData(t *testing.T) {
	syn := with(at(100, 50, data(0)), flowcell.FlagSYN) // TCP Fast Open
	script(t, Config{}, push(0, syn, "a"), push(0, at(161, 10, data(0)), ""), push(0, at(151, 10, data(0)), "cb"))
}

func TestPush_finOccupiesOne(t *testing.T) {
	fin := with(at(300, 0, data(0)), flowcell.FlagFIN)
	_, s := script(t, Config{},
		push(0, data(1), "a"),
		push(0, fin, ""), // ahead of data(2)
		push(0, data(2), "cb"),
		push(1*ms, fin, "d"), // retransmitted after the close
		push(1*ms, data(2), "e"),
		push(1*ms, at(301, 1, data(0)), "f"))
	if s.Retransmission != 2 || s.HeldPackets != 0 {
		t.Errorf("%+v", s)
	}
}

func TestPush_resetDeliversHeldFirst(t *testing.T) {
	rst := with(at(100, 0, data(0)), flowcell.FlagRST)
	_, s := script(t, Config{},
		push(0, data(1), "a"),
		push(0, data(4), ""),
		push(0, data(3), ""),
		push(0, of(2, data(1)), "d"),
		push(0, of(2, data(3)), ""),
		push(0, rst, "cbf"),
		push(0, rst, "g"), // of a flow that is forgotten
		push(0, data(9), "h"),
		push(0, of(2, data(2)), "ie"))
	if s.Flushed != 2 || s.Passed != 2 {
		t.Errorf("%+v", s)
	}
}

func TestPush_retransmissions(t *testing.T) {
	_, s := script(t, Config{},
		push(0, data(1), "a"),
		push(0, data(1), "b"),                   // of what is delivered
		push(0, data(4), ""),                    //
		push(0, data(4), ""),                    // of what is held
		push(0, at(410, 20, data(0)), ""),       // inside what is held
		push(0, at(390, 150, data(0)), ""),      // more than what is held
		push(0, at(150, 240, data(0)), "gfcde"), // old in part: closes the gap
		push(0, data(5), "h"),
		push(0, at(540, 60, data(0)), "i"))
	if s.Retransmission != 4 || s.InOrder != 1 || s.Filled != 4 {
		t.Errorf("%+v", s)
	}
}

// TCP would take a copy that overtakes its gap for a sign of loss.
func TestPush_copyOfHeldWaitsBesideIt(t *testing.T) {
	script(t, Config{},
		push(0, at(0, 10, data(0)), "a"),
		push(0, at(40, 10, data(0)), ""),
		push(0, at(30, 100, data(0)), ""),
		push(0, at(60, 10, data(0)), ""),
		push(0, at(10, 20, data(0)), "ecbd"))
}

func TestPush_wrapsAround(t *testing.T) {
	const top = math.MaxUint32
	script(t, Config{},
		push(0, at(top-149, 100, data(0)), "a"),
		push(0, at(50, 100, data(0)), ""),
		push(0, at(top-49, 100, data(0)), "cb"),
		push(0, at(top-49, 100, data(0)), "d"))
}

// What is far from its flow is delivered and changes nothing, until some of it in a
// row shows that the flow is there.
func TestPush_leapsBehindStrays(t *testing.T) {
	const far = 1 << 30
	_, s := script(t, Config{},
		push(0, data(1), "a"),
		push(0, data(3), ""),
		push(0, at(200+firstWindow+140, 100, data(0)), ""), // just near
		push(0, at(201+firstWindow+280, 100, data(0)), "d"),
		push(0, at(far, 100, data(0)), "e"),
		push(0, at(far+100, 100, data(0)), "f"),
		push(0, at(far+400, 100, data(0)), "g"),
		push(0, at(far+600, 100, data(0)), "bc"), // the fourth: the flow is there, behind f
		push(0, at(far+300, 100, data(0)), ""),
		push(0, at(far+200, 100, data(0)), "ji"), // g has gone
		expire(10*ms, "h"),
		push(11*ms, data(4), "k"), // and back
		push(11*ms, data(5), "l"),
		push(11*ms, data(6), "m"),
		push(11*ms, data(8), ""),
		push(11*ms, data(7), "on"))
	if s.Flushed != 2 || s.Stray != 7 || s.Leaps != 2 || s.HeldPackets != 0 {
		t.Errorf("%+v", s)
	}
}

// Strays between which the flow gets on do not move it, however many.
func TestPush_straysBetweenOthersMoveNothing(t *testing.T) {
	b := New[int](Config{})
	for n := range 3000 {
		s := data(n)
		if out := b.Push(&s, n, 0, nil); len(out) != 1 {
			t.Fatalf("segment %d: %d delivered", n, len(out))
		}
		for i := range leaps - 1 {
			s := at(1<<29+uint32(100*(3*n+i)), 100, data(0))
			b.Push(&s, n, 0, nil)
		}
	}
	if s := b.Stats(); s.Leaps != 0 || s.InOrder != 3000 || s.Stray != 3000*(leaps-1) {
		t.Errorf("%+v", s)
	}
}

func TestPush_offKeepsOrderOfArrival(t *testing.T) {
	b, s := script(t, Config{Discipline: Off},
		push(0, data(1), "a"), push(0, data(4), "b"), push(0, data(2), "c"), push(0, data(3), "d"),
		push(0, data(5), "e"), push(0, data(5), "f"))
	if s.ArrivedOutOfOrder != 3 || s.DeliveredOutOfOrder != 3 || s.Passed != 6 {
		t.Errorf("%+v", s)
	}
	if _, ok := b.NextDeadline(); ok {
		t.Error("has a deadline")
	}
}

func TestPush_flowBoundsReleaseTheFlow(t *testing.T) {
	steps := []step{
		push(0, data(1), "a"), push(0, of(2, data(1)), "b"), push(0, of(2, data(3)), ""),
		push(0, data(5), ""), push(0, data(7), ""), push(0, data(3), "fde"),
		push(0, data(4), "g"), push(0, data(8), "h"),
	}
	for name, c := range map[string]Config{
		"packets": {FlowPackets: 2},
		"bytes":   {FlowBytes: 2*140 + 139},
	} {
		t.Run(name, func(t *testing.T) {
			if _, s := script(t, c, steps...); s.Bound != 3 || s.MaxHeldPackets != 3 || s.HeldPackets != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestPush_totalBoundsReleaseTheLongestWaiting(t *testing.T) {
	steps := []step{
		push(0, data(1), "a"), push(0, of(2, data(1)), "b"),
		push(1*ms, of(2, data(3)), ""), push(2*ms, data(3), ""), push(3*ms, of(2, data(5)), ""),
		push(4*ms, data(4), "ce"),
		push(5*ms, data(2), "gdf"),
	}
	for name, c := range map[string]Config{
		"packets": {TotalPackets: 3},
		"bytes":   {TotalBytes: 3*140 + 139},
	} {
		t.Run(name, func(t *testing.T) {
			if _, s := script(t, c, steps...); s.Bound != 2 || s.MaxHeldPackets != 3 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Of flows that were hardly seen, one that holds is kept longer than one that
// does not, and what is held is delivered before it is forgotten.
func TestPush_forgetsFlows(t *testing.T) {
	_, s := script(t, Config{Flows: 2},
		push(0, data(1), "a"), push(0, of(2, data(1)), "b"), push(0, of(2, data(3)), ""),
		push(1*ms, data(2), "d"),
		push(2*ms, of(3, data(1)), "e"), // forgets 1, though 2 is idle longer
		push(3*ms, of(3, data(3)), ""),
		push(4*ms, of(4, data(1)), "cg"), // forgets 2: both hold
		push(5*ms, of(2, data(9)), "h"),  // forgets 4
		push(6*ms, of(3, data(2)), "if"))
	if s.FlowsEvicted != 3 || s.Flows != 2 || s.Bound != 1 {
		t.Errorf("%+v", s)
	}
}

func TestFlow_rankIsJugglersOrder(t *testing.T) {
	held := new(holding[int])
	for i, c := range []struct {
		name string
		f    flow[int]
		idle time.Duration
		want uint8
	}{
		{"hardly seen", flow[int]{}, 0, 0},
		{"idle for long", flow[int]{established: true}, inactive + 1, 0},
		{"lost something long ago", flow[int]{established: true, lostTo: 9}, inactive + 1, 0},
		{"hardly seen, holds", flow[int]{held: held}, time.Hour, 1},
		{"established", flow[int]{established: true}, inactive, 2},
		{"active", flow[int]{established: true, held: held}, 0, 3},
		{"recovering", flow[int]{established: true, lostTo: 9}, 0, 4},
	} {
		if got := c.f.rank(c.idle); got != c.want {
			t.Errorf("%d: %s: %d, want %d", i, c.name, got, c.want)
		}
	}
}

func TestPush_peerBoundsReleaseTheLongestHolding(t *testing.T) {
	from := func(peer uint64, s flowcell.Packet) flowcell.Packet {
		s.Flow.Src = flowcell.AddressFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(peer)}))
		return s
	}
	list := []step{
		push(0, from(1, data(1)), "a"), push(0, from(1, of(2, data(1))), "b"), push(0, from(2, data(1)), "c"),
		push(1*ms, from(1, data(3)), ""), push(2*ms, from(1, of(2, data(3))), ""), push(2*ms, from(2, data(3)), ""),
		push(2*ms, from(2, data(5)), ""),
		push(3*ms, from(1, of(2, data(4))), "d"), // the third of peer 1
		push(4*ms, from(2, data(2)), "if"),
		push(4*ms, from(1, of(2, data(2))), "jeh"),
	}
	for name, c := range map[string]Config{
		"packets": {PeerPackets: 2},
		"bytes":   {PeerBytes: 2*140 + 139},
	} {
		t.Run(name, func(t *testing.T) {
			if _, s := script(t, c, list...); s.Bound != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// What TCP sends besides plain data.
func TestPush_keepAlivesAndProbes(t *testing.T) {
	_, s := script(t, Config{},
		push(0, data(1), "a"), push(0, data(2), "b"),
		push(1*ms, at(299, 0, data(0)), "c"), // a keep-alive
		push(1*ms, at(299, 1, data(0)), "d"), // the old kind, with a byte
		push(2*ms, at(300, 1, data(0)), "e"), // a zero window probe
		push(3*ms, at(300, 1, data(0)), "f"), // again
		push(4*ms, data(3), "g"),             // and the data from there
		push(4*ms, data(4), "h"))
	if s.HeldPackets != 0 || s.Retransmission != 3 {
		t.Errorf("%+v", s)
	}
}

func TestPush_changedMSS(t *testing.T) {
	script(t, Config{},
		push(0, data(1), "a"),
		push(0, at(350, 25, data(0)), ""),
		push(0, at(375, 25, data(0)), ""),
		push(0, at(250, 100, data(0)), ""),
		push(0, at(200, 50, data(0)), "edbc"),
		push(0, at(400, 700, data(0)), "f"))
}

// PushBatch is Push, whatever happens to the table on the way.
func TestPushBatch_isPush(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 0))
	c := Config{TotalPackets: 50} // and Flows for all: who is forgotten may differ
	one, many := New[int](c), New[int](c)
	for round := range 200 {
		now := time.Duration(round) * ms
		segments, packets := make([]flowcell.Packet, rng.IntN(150)), make([]int, 150)
		var want []int
		for i := range segments {
			segments[i] = of(rng.IntN(30), data(round+rng.IntN(5)))
			if rng.IntN(10) == 0 {
				segments[i].Payload = 0
			}
			if rng.IntN(20) == 0 {
				segments[i].Flags |= flowcell.FlagRST
			}
			packets[i] = i
			want = one.Push(&segments[i], i, now, want)
		}
		got := many.PushBatch(segments, packets, now, nil)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, round %d: %v, want %v", seed, round, got, want)
		}
	}
	if one.Stats() != many.Stats() {
		t.Errorf("seed %d: %+v\n%+v", seed, one.Stats(), many.Stats())
	}
}

// Whatever the order, as long as the first comes first and nothing runs out,
// what leaves is what was sent.
func TestPush_sortsAnyPermutation(t *testing.T) {
	const seed, n = 5, 500
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		base := rng.Uint32()
		b := New[int](Config{})
		var out []int
		first := at(base, 100, data(0))
		out = b.Push(&first, 0, 0, out)
		for _, i := range rng.Perm(n) {
			s := at(base+100*uint32(i+1), 100, data(0))
			out = b.Push(&s, i+1, 0, out)
		}
		if !slices.IsSorted(out) || len(out) != n+1 {
			t.Fatalf("seed %d: %v", seed, out)
		}
		if s := b.Stats(); s.DeliveredOutOfOrder != 0 || s.ArrivedOutOfOrder == 0 {
			t.Fatalf("seed %d: %+v", seed, s)
		}
	}
}

func TestPush_keepsNoReference(t *testing.T) {
	b := New[*int](Config{})
	for i := range 10 {
		s := data(10 - i)
		b.Push(&s, new(int), 0, nil)
	}
	for _, n := range []int{11, 13} {
		s := data(n)
		b.Push(&s, new(int), 0, nil)
	}
	b.Flush(nil)
	n := 0
	for k := b.pool.packets; k != nil; k = k.next {
		if n++; k.p != nil {
			t.Error("a delivered packet is still referred to")
		}
	}
	if n == 0 {
		t.Fatal("nothing was held")
	}
}
