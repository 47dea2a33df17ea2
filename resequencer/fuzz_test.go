package resequencer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/flowcell"
)

// trial drives a Buffer and the oracle through one sequence of operations.
type trial struct {
	t       *testing.T
	b       *Buffer[int]
	o       oracle
	now     time.Duration
	arrived []time.Duration // by packet
	left    []bool
	order   []int // in which they left
}

func newTrial(t *testing.T, c Config) *trial {
	return &trial{t: t, b: New[int](c), o: oracle{c: c.withDefaults()}}
}

// check compares what came out and looks at everything that must always hold.
func (r *trial) check(op string, got, want []int) {
	r.t.Helper()
	if !slices.Equal(got, want) {
		r.t.Fatalf("%s at %v: delivers %v, want %v", op, r.now, got, want)
	}
	r.order = append(r.order, got...)
	for _, id := range got {
		if r.left[id] {
			r.t.Fatalf("%s at %v: packet %d leaves twice", op, r.now, id)
		}
		r.left[id] = true
		if wait := r.now - r.arrived[id]; wait > r.longest() {
			r.t.Fatalf("%s: packet %d was held for %v", op, id, wait)
		}
	}
	s := r.b.Stats()
	if want := r.o.Stats(); s != want {
		r.t.Fatalf("%s at %v:\n%+v, want\n%+v", op, r.now, s, want)
	}
	c := r.o.c
	if s.HeldPackets > c.TotalPackets || s.HeldBytes > c.TotalBytes ||
		s.MaxHeldPackets > c.TotalPackets || s.MaxHeldBytes > c.TotalBytes || s.Flows > c.Flows {
		r.t.Fatalf("%s at %v: over a bound of %+v: %+v", op, r.now, c, s)
	}
	if int(s.Delivered())+s.HeldPackets != len(r.arrived) {
		r.t.Fatalf("%s at %v: %d packets pushed, %+v", op, r.now, len(r.arrived), s)
	}
	r.structure(op)
}

// longest is the longest that anything may be held.
func (r *trial) longest() time.Duration {
	if r.o.c.Discipline == Juggler {
		return r.o.c.Hold + r.o.c.Merge
	}
	return r.o.c.Hold
}

// structure checks the lists, which the oracle has not got.
func (r *trial) structure(op string) {
	r.t.Helper()
	c := r.o.c
	packets := 0
	for h := r.b.holding.next.of; h != nil; h = h.byAge.next.of {
		f := r.b.flows.Get(&h.key, r.now)
		if f == nil || f.held != h {
			r.t.Fatalf("%s at %v: %v holds but is not known", op, r.now, h.key)
		}
		if h.packets > c.FlowPackets || h.bytes > c.FlowBytes || h.peer.packets > c.PeerPackets || h.peer.bytes > c.PeerBytes {
			r.t.Fatalf("%s at %v: a flow holds %d packets, %d bytes; its peer %d, %d", op, r.now, h.packets, h.bytes, h.peer.packets, h.peer.bytes)
		}
		packets += h.packets
		for l := range levels {
			for n := h.head[l]; n != nil && n.next[l] != nil; n = n.next[l] {
				if ahead(n.next[l].start, n.end) <= 0 {
					r.t.Fatalf("%s at %v: level %d: run %d-%d before %d", op, r.now, l, n.start, n.end, n.next[l].start)
				}
			}
		}
		if d := ahead(h.first().start, f.next); d < 0 || d == 0 && c.Discipline != Juggler {
			r.t.Fatalf("%s at %v: holds %d, which is due since %d", op, r.now, h.first().start, f.next)
		}
	}
	if packets != r.b.stats.HeldPackets {
		r.t.Fatalf("%s at %v: %d packets held, counted %d", op, r.now, packets, r.b.stats.HeldPackets)
	}
	for i := range r.b.queues {
		for x := r.b.queues[i].next.of; x != nil && x.due.next.of != nil; x = x.due.next.of {
			if x.due.next.of.at < x.at {
				r.t.Fatalf("%s at %v: class %d: due at %v before %v", op, r.now, i, x.at, x.due.next.of.at)
			}
		}
	}
}

func (r *trial) push(s flowcell.Packet) {
	n := len(r.arrived)
	r.arrived = append(r.arrived, r.now)
	r.left = append(r.left, false)
	got := r.b.Push(&s, n, r.now, nil)
	// Whom the Buffer forgets is its choice, which the table's tests judge.
	var evicted *flowcell.FiveTuple
	if r.b.flows.Evicted() > r.o.stats.FlowsEvicted {
		for _, f := range r.o.flows {
			if r.b.flows.Get(&f.key, r.now) == nil {
				evicted = &f.key
			}
		}
	}
	r.check("Push", got, r.o.push(&s, n, r.now, evicted))
}

// pass lets time pass, with an Expire at every deadline on the way.
func (r *trial) pass(d time.Duration) {
	until := r.now + d
	for {
		at, ok := r.b.NextDeadline()
		if due, _ := r.o.nextDue(); ok != (due != nil) || ok && at != due.at {
			r.t.Fatalf("NextDeadline at %v: %v, %v; want %+v", r.now, at, ok, due)
		}
		if !ok || at > until {
			break
		}
		if at < r.now {
			r.t.Fatalf("NextDeadline at %v: %v", r.now, at)
		}
		r.now = at
		r.check("Expire", r.b.Expire(at, nil), r.o.expire(at))
		if next, ok := r.b.NextDeadline(); ok && next <= at {
			r.t.Fatalf("NextDeadline after Expire at %v: %v", at, next)
		}
	}
	r.now = until
	r.check("Expire early", r.b.Expire(until, nil), r.o.expire(until))
}

func (r *trial) end() {
	r.check("Flush", r.b.Flush(nil), r.o.flush())
	if s := r.b.Stats(); s.HeldPackets != 0 || s.HeldBytes != 0 {
		r.t.Fatalf("after Flush: %+v", s)
	}
	for id, left := range r.left {
		if !left {
			r.t.Fatalf("packet %d never left", id)
		}
	}
}

const (
	configBytes = 9
	opBytes     = 6
)

// play reads a Config and then operations and returns what was counted.
func play(t *testing.T, d Discipline, ops []byte) Stats {
	if len(ops) < configBytes {
		return Stats{}
	}
	hold := time.Duration(1+ops[0]%20) * time.Millisecond
	flowBytes := 1 + 40*int(ops[3])
	if ops[3] == 255 {
		flowBytes = 0
	}
	r := newTrial(t, Config{
		Discipline:   d,
		Hold:         hold,
		MinHold:      hold >> (ops[0] / 20 % 8),
		Merge:        time.Duration(ops[1]) * 10 * time.Microsecond,
		FlowPackets:  1 + int(ops[2]%32),
		FlowBytes:    flowBytes,
		PeerPackets:  1 + int(ops[4]%64),
		PeerBytes:    1 + 80*int(ops[5]),
		TotalPackets: 1 + int(ops[6]%64),
		TotalBytes:   1 + 80*int(ops[7]),
		Flows:        1 + int(ops[8]%6),
	})
	for ops = ops[configBytes:]; len(ops) >= opBytes; ops = ops[opBytes:] {
		const start = 1<<32 - 1200 // wraps early
		place := uint32(ops[1])
		s := flowcell.Packet{
			Flow:    tuple(int(ops[0] >> 5)),
			Seq:     start + 50*place,
			Payload: 50,
			Flags:   flowcell.FlagACK,
			Length:  int(ops[3]),
		}
		// Flows of two numberings and of none; cells of five segments.
		switch ops[0] >> 5 {
		case 0, 1, 2:
			s.ID = uint16(flowcell.MakeNumber(uint16(1000+place/5), uint8(place%5)))
		case 3, 4:
			s.ID = uint16(place) + 40
		default:
			s.ID = uint16(ops[2])<<8 | uint16(ops[5])
		}
		switch ops[0] % 32 {
		case 0:
			s.Flags |= flowcell.FlagSYN
		case 1:
			s.Seq, s.Payload, s.Flags = start-1, 0, flowcell.FlagSYN
		case 2:
			s.Flags |= flowcell.FlagFIN
		case 3:
			s.Flags |= flowcell.FlagRST
		case 4:
			s.Payload = 0
		case 5:
			s.Seq += uint32(ops[3]) << (22 + ops[2]%3) // from another world, or nearly
		case 6:
			s.Payload = 1 << 30 >> (ops[3] % 31)
		case 7:
			r.check("Flush", r.b.Flush(nil), r.o.flush())
		case 8, 9: // not as the others were cut
			s.Seq += uint32(ops[2]%3) * 10
			s.MoreSegments = ops[2] >> 6
			s.Payload = 50 * (1 + int32(s.MoreSegments))
		case 10: // a retransmission has a number of its own
			if f := r.o.find(s.Flow); f != nil && f.lost {
				s.Seq, s.ID = f.lostFrom, f.id
			}
			s.ID += 300
		case 11:
			s.Flags |= flowcell.FlagPSH
		case 14: // at the edge of what is near
			if f := r.o.find(s.Flow); f != nil {
				w := uint32(r.o.window(f)) + uint32(ops[3]%5) - 2
				if ops[5]%2 == 0 {
					w = -w
				}
				s.Seq = f.next + w
			}
		case 15, 16: // some in a row, in another world
			for i := range int(ops[5]%8) + 1 {
				x := s
				x.Seq += uint32(1+ops[3]%4)<<28 + 50*uint32(i*int(ops[2]%4))
				r.push(x)
			}
			continue
		case 17: // much of it
			if f := r.o.find(s.Flow); f != nil {
				s.Seq, s.Payload = f.next, 1<<(10+ops[3]%12)
			}
		case 12, 13: // a while without any gap
			if f := r.o.find(s.Flow); f != nil {
				for range int(ops[3]) {
					s.Seq, s.ID = f.next, f.id+1
					r.push(s)
				}
				continue
			}
		}
		r.push(s)
		r.pass(time.Duration(ops[4]%32) * 100 * time.Microsecond)
	}
	r.end()
	return r.b.Stats()
}

func fuzz(f *testing.F, d Discipline) {
	for seed := range uint64(20) {
		f.Add(randomOps(seed, 20))
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 2000 {
			t.Skip() // the oracle is quadratic
		}
		play(t, d, ops)
	})
}

func FuzzPush_presto(f *testing.F)   { fuzz(f, Presto) }
func FuzzPush_sequence(f *testing.F) { fuzz(f, Sequence) }
func FuzzPush_juggler(f *testing.F)  { fuzz(f, Juggler) }

func randomOps(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 0))
	ops := make([]byte, configBytes+opBytes*n)
	for i := range ops {
		ops[i] = byte(rng.Uint32())
	}
	if rng.IntN(3) > 0 { // bounds that are not in the way
		copy(ops[2:], []byte{255, 255, 255, 255, 255, 255, 5})
	}
	// Most operations are data of one flow or two, some of it late.
	at := 0
	for i := configBytes; i < len(ops); i += opBytes {
		if rng.IntN(12) == 0 {
			continue
		}
		ops[i] = byte(rng.IntN(2)*3<<5 | 31)
		ops[i+1] = byte(at)
		at++
		ops[i+4] %= 4
		if back := configBytes + rng.IntN(4)*opBytes; rng.IntN(4) == 0 && i > back+configBytes {
			ops[i+1], ops[i+1-back+configBytes] = ops[i+1-back+configBytes], ops[i+1]
		}
		if rng.IntN(40) == 0 {
			at = max(0, at-10)
		}
	}
	return ops
}

func TestPush_matchesOracle(t *testing.T) {
	for _, d := range []Discipline{Presto, Sequence, Juggler, Off} {
		t.Run(d.String(), func(t *testing.T) {
			var sum Stats
			for seed := range uint64(fewer(700)) {
				seed += 1000
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
					s := play(t, d, randomOps(seed, 150))
					sum.InOrder += s.InOrder
					sum.Filled += s.Filled
					sum.TimedOut += s.TimedOut
					sum.Loss += s.Loss
					sum.Retransmission += s.Retransmission
					sum.Bound += s.Bound
					sum.Flushed += s.Flushed
					sum.Passed += s.Passed
					sum.DeliveredOutOfOrder += s.DeliveredOutOfOrder
					sum.TimeoutsLate += s.TimeoutsLate
					sum.TimeoutsLoss += s.TimeoutsLoss
					sum.TimeoutsPutOff += s.TimeoutsPutOff
					sum.FlowsNumbered += s.FlowsNumbered
					sum.FlowsUnnumbered += s.FlowsUnnumbered
					sum.FlowsEvicted += s.FlowsEvicted
					sum.Stray += s.Stray
					sum.Leaps += s.Leaps
				})
			}
			t.Logf("%+v", sum)
			seen := []uint64{sum.Passed, sum.DeliveredOutOfOrder, sum.FlowsEvicted}
			if d != Off {
				seen = append(seen, sum.Stray, sum.Leaps, sum.InOrder, sum.Filled, sum.TimedOut, sum.Retransmission, sum.Bound, sum.Flushed,
					sum.TimeoutsLoss, sum.FlowsNumbered, sum.FlowsUnnumbered)
			}
			if d == Presto {
				seen = append(seen, sum.Loss)
			}
			for _, n := range seen {
				if n < uint64(fewer(20)) {
					t.Errorf("the operations leave something untested: %+v", sum)
				}
			}
		})
	}
}
