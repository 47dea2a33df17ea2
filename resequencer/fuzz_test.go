package resequencer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
	for _, id := range got {
		if r.left[id] {
			r.t.Fatalf("%s at %v: packet %d leaves twice", op, r.now, id)
		}
		r.left[id] = true
		if wait := r.now - r.arrived[id]; wait > r.o.c.Hold {
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
	for _, f := range r.b.table.flows {
		if f.packets > c.FlowPackets || f.bytes > c.FlowBytes {
			r.t.Fatalf("%s at %v: a flow holds %d packets of %d bytes", op, r.now, f.packets, f.bytes)
		}
		for k := f.first(); k != nil; k = k.bySeq.next.of {
			if next := k.bySeq.next.of; next != nil && ahead(next.seq, k.seq) < 0 {
				r.t.Fatalf("%s at %v: held %d before %d", op, r.now, k.seq, next.seq)
			}
			if ahead(k.seq, f.next) <= 0 {
				r.t.Fatalf("%s at %v: holds %d, which is due since %d", op, r.now, k.seq, f.next)
			}
			if strings.HasPrefix(op, "Expire") && r.now-k.since >= c.Hold {
				r.t.Fatalf("%s at %v: still holds %d of %v", op, r.now, k.seq, k.since)
			}
		}
	}
}

func (r *trial) push(s Segment) {
	id := len(r.arrived)
	r.arrived = append(r.arrived, r.now)
	r.left = append(r.left, false)
	r.check("Push", r.b.Push(s, id, r.now, nil), r.o.push(s, id, r.now))
}

// pass lets time pass, with an Expire at every deadline on the way.
func (r *trial) pass(d time.Duration) {
	until := r.now + d
	for {
		at, ok := r.b.NextDeadline()
		if ok != (len(r.o.held) > 0) {
			r.t.Fatalf("NextDeadline at %v: %v with %d held", r.now, ok, len(r.o.held))
		}
		if !ok || at > until {
			break
		}
		if at < r.now {
			r.t.Fatalf("NextDeadline at %v: %v", r.now, at)
		}
		r.now = at
		got := r.b.Expire(at, nil)
		r.check("Expire", got, r.o.expire(at))
		if len(got) == 0 {
			r.t.Fatalf("Expire at its deadline %v delivers nothing", at)
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

// play reads a Config and then operations, five bytes each, and returns what
// was counted.
func play(t *testing.T, ops []byte) Stats {
	if len(ops) < 6 {
		return Stats{}
	}
	r := newTrial(t, Config{
		Hold:         time.Duration(1+ops[0]%20) * time.Millisecond,
		Off:          ops[5]%16 == 0,
		FlowPackets:  1 + int(ops[1]%32),
		FlowBytes:    1 + 40*int(ops[2]),
		TotalPackets: 1 + int(ops[3]%64),
		TotalBytes:   1 + 80*int(ops[4]),
		Flows:        1 + int(ops[5]>>4%4),
	})
	for ops = ops[6:]; len(ops) >= 5; ops = ops[5:] {
		const start = 1<<32 - 600 // wraps early
		s := Segment{
			Flow:    tuple(int(ops[0] >> 5)),
			Seq:     start + 50*uint32(ops[1]%64) + uint32(ops[2]%3)*10,
			Payload: 50 * (1 + int(ops[2]>>6)),
			Flags:   flowcell.FlagACK,
			Size:    int(ops[3]),
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
		}
		r.push(s)
		r.pass(time.Duration(ops[4]%32) * 100 * time.Microsecond)
	}
	r.end()
	return r.b.Stats()
}

func FuzzPush(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(randomOps(seed, 20))
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 2000 {
			t.Skip() // the oracle is quadratic
		}
		play(t, ops)
	})
}

func randomOps(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 0))
	ops := make([]byte, 6+5*n)
	for i := range ops {
		ops[i] = byte(rng.Uint32())
	}
	// Most operations are data of one flow or two, not far ahead.
	at := 0
	for i := 6; i < len(ops); i += 5 {
		if rng.IntN(8) > 0 {
			ops[i] = byte(rng.IntN(2)<<5 | 31)
			ops[i+1] = byte(at + rng.IntN(6))
			ops[i+2] = 0
			at += rng.IntN(2)
		}
	}
	return ops
}

func TestPush_matchesOracle(t *testing.T) {
	var sum Stats
	for seed := uint64(1000); seed < 1400; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := play(t, randomOps(seed, 150))
			sum.InOrder += s.InOrder
			sum.Filled += s.Filled
			sum.TimedOut += s.TimedOut
			sum.Retransmission += s.Retransmission
			sum.Bound += s.Bound
			sum.Flushed += s.Flushed
			sum.Passed += s.Passed
			sum.DeliveredOutOfOrder += s.DeliveredOutOfOrder
			sum.FlowsEvicted += s.FlowsEvicted
		})
	}
	for _, n := range []uint64{sum.InOrder, sum.Filled, sum.TimedOut, sum.Retransmission,
		sum.Bound, sum.Flushed, sum.Passed, sum.DeliveredOutOfOrder, sum.FlowsEvicted} {
		if n < 100 {
			t.Errorf("the operations leave something untested: %+v", sum)
		}
	}
}
