package dataplane

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/flowcell"
	"weft/resequencer"
)

// lateTracks is datagrams that are on their way by tracks which keep their order.
type lateTracks struct {
	rng     *rand.Rand
	n       uint8
	next    uint32
	waiting [][]flowcell.Place // of each track
}

func newLateTracks(seed uint64, n uint8, first uint32) *lateTracks {
	return &lateTracks{rand.New(rand.NewPCG(seed, 0)), n, first, make([][]flowcell.Place, n)}
}

// send sends some datagrams by the next tracks, a run of up to four by each, and loses some.
func (l *lateTracks) send(n int) (lost []uint32) {
	for track := uint8(l.rng.IntN(int(l.n))); n > 0; track = (track + 1) % l.n {
		for range l.rng.IntN(4) + 1 {
			if l.rng.IntN(20) == 0 {
				lost = append(lost, l.next)
			} else {
				l.waiting[track] = append(l.waiting[track], flowcell.MakePlace(l.next, track))
			}
			l.next++
			n--
		}
	}
	return lost
}

// arrive returns the next that arrives, by any track.
func (l *lateTracks) arrive() (p flowcell.Place, ok bool) {
	at := l.rng.IntN(len(l.waiting))
	for range l.waiting {
		if w := l.waiting[at]; len(w) > 0 {
			l.waiting[at] = w[1:]
			return w[0], true
		}
		at = (at + 1) % len(l.waiting)
	}
	return 0, false
}

// What all tracks have passed never comes any more; and what is lost is found so.
func TestTracks_neverTooEarly(t *testing.T) {
	// A mutant that does not wait for the tracks which have not been seen is caught.
	tooEarly := func(all uint16) (wrong, told int) {
		for seed := range uint64(50) {
			net := newLateTracks(seed, 4, 1<<32-600)
			var l tracks
			var came []uint32
			lost := net.send(1000)
			upTo, known := net.next-1000, false
			for p, ok := net.arrive(); ok; p, ok = net.arrive() {
				number := p.After(upTo)
				if known && int32(number-upTo) < 0 {
					wrong++
				}
				came = append(came, number)
				l.came(p, number)
				use := all
				if use == 0 {
					use = l.seen
				}
				if to, ok := l.passed(use); ok {
					if all != 0 && known && int32(to-upTo) < 0 {
						t.Fatal("what has been passed is not any more")
					}
					upTo, known = to, true
				}
			}
			for _, n := range lost {
				if known && int32(n-upTo) < 0 && !slices.Contains(came, n) {
					told++
				}
			}
		}
		return wrong, told
	}
	if wrong, told := tooEarly(0b1111); wrong > 0 || told < 1000 {
		t.Errorf("%d datagrams came that were taken for lost; %d were found lost", wrong, told)
	}
	if wrong, _ := tooEarly(0); wrong == 0 {
		t.Error("tracks that were not seen yet are not waited for, and no test finds that")
	}
	var l tracks
	if l.came(flowcell.MakePlace(200, 0), 200); l.seen != 1 {
		t.Errorf("seen %b", l.seen)
	}
	if l.came(flowcell.MakePlace(300, flowcell.NoTrack), 300); l.seen != 1 {
		t.Errorf("no track counts as one: %b", l.seen)
	}
	if _, ok := l.passed(0); ok {
		t.Error("tracks are not known, and have been passed")
	}
}

// datagramDivider is what the filter at the uplink (hostprog/bpf/order.c) does with the
// datagrams of one flow. It has no reader but the test.
type datagramDivider struct {
	next               uint32
	diverted, returned uint64
	tracks             uint16
}

func (d *datagramDivider) Len() int                             { return 1 }
func (d *datagramDivider) Find(*flowcell.FiveTuple) (int, bool) { return 0, true }
func (d *datagramDivider) Next(int) uint32                      { return d.next }
func (d *datagramDivider) Parts() int                           { return 1 }
func (d *datagramDivider) Limit(int, int) error                 { return nil }
func (d *datagramDivider) Tracks(int) uint16                    { return d.tracks }
func (d *datagramDivider) Diverted(int) uint64                  { return d.diverted }
func (d *datagramDivider) Returned(int) uint64                  { return d.returned }
func (d *datagramDivider) Return(_ int, next uint32, n uint64)  { d.next, d.returned = next, n }

// diverts is what the filter does with a packet.
func (d *datagramDivider) diverts(p flowcell.Place) bool {
	number := p.After(d.next)
	if d.diverted == d.returned && int32(number-d.next) <= 0 {
		d.next = max(d.next, number+1)
		return false
	}
	d.diverted++
	return true
}

// datagramFlow is the reader's side of such a flow.
type datagramFlow struct {
	datagramDivider
	h     *handover
	order *resequencer.Buffer[uint32]
	now   time.Duration
	out   []uint32 // what programs get: numbers modulo 65,536
}

var datagramTuple = flowcell.FiveTuple{Proto: flowcell.ProtoUDP, SrcPort: 1, DstPort: 443}

func newDatagramFlow(next uint32, tracks uint16) *datagramFlow {
	f := &datagramFlow{datagramDivider: datagramDivider{next: next, tracks: tracks}}
	f.order = resequencer.New[uint32](datagramOrder(resequencer.Config{}))
	f.h = newHandover(&f.datagramDivider, f.order, f.order)
	return f
}

// arrive carries one datagram as far as it comes.
func (f *datagramFlow) arrive(p flowcell.Place) {
	f.now += 10 * time.Microsecond
	if !f.diverts(p) {
		f.out = append(f.out, uint32(p)&0xfff)
		return
	}
	pkt := flowcell.Packet{Flow: datagramTuple, ID: uint16(p)}
	f.h.arrivedDatagram(&pkt, false, f.now)
	f.out = f.order.Push(&pkt, uint32(p)&0xfff, f.now, f.out)
	f.h.passed(func(flow *flowcell.FiveTuple, upTo uint32) { f.out = f.order.GiveUp(flow, upTo, f.out) })
	f.expire(f.now)
}

func (f *datagramFlow) expire(now time.Duration) {
	f.now = now
	was := len(f.out)
	f.out = f.order.Expire(now, f.out)
	f.h.settle(len(f.out) > was, true, now)
}

// Datagrams come out in the order in which they were sent, each once, whatever is lost; and
// no loss is waited for where all tracks go on.
func TestHandover_datagrams(t *testing.T) {
	for seed := range uint64(30) {
		const first = 0xffffff00 // the numbers begin again
		net := newLateTracks(seed, 4, first)
		f := newDatagramFlow(first, 0b1111)
		lost := 0
		for range 200 {
			lost += len(net.send(12))
			for range 11 {
				if p, ok := net.arrive(); ok {
					f.arrive(p)
				}
			}
		}
		for p, ok := net.arrive(); ok; p, ok = net.arrive() {
			f.arrive(p)
		}
		if s := f.order.Stats(); s.TimedOut > 0 {
			t.Errorf("seed %d: %d datagrams have waited for what was lost", seed, s.TimedOut)
		}
		f.expire(f.now + time.Second)
		f.expire(f.now + time.Second)
		if got, want := len(f.out), int(net.next-first)-lost; got != want {
			t.Fatalf("seed %d: %d datagrams of %d", seed, got, want)
		}
		for i := range f.out[1:] {
			if step := (f.out[i+1] - f.out[i]) & 0xfff; step == 0 || step > 100 {
				t.Fatalf("seed %d: %d comes behind %d", seed, f.out[i+1], f.out[i])
			}
		}
		if f.diverted != f.returned || len(f.h.flows) > 0 {
			t.Errorf("seed %d: %d of %d returned", seed, f.returned, f.diverted)
		}
	}
}

// A loss that no track shows is waited for as long as a hold, and no longer.
func TestHandover_datagramsHold(t *testing.T) {
	f := newDatagramFlow(500, 0)
	f.arrive(flowcell.MakePlace(501, 1))
	f.arrive(flowcell.MakePlace(502, 2))
	if len(f.out) != 0 {
		t.Fatalf("delivered %d", f.out)
	}
	hold := datagramHolds * resequencer.DefaultHold
	if at, ok := f.order.NextDeadline(); !ok || at > hold+time.Millisecond {
		t.Errorf("until %v", at)
	}
	if f.expire(hold + time.Millisecond); !slices.Equal(f.out, []uint32{501, 502}) {
		t.Errorf("delivered %d", f.out)
	}
}

// Copies, and numbers of a stranger's, keep nothing from anybody for longer than a hold.
func TestHandover_datagramsForged(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := newDatagramFlow(0, 0b1111)
		sent := 0
		for at := range uint32(3000) {
			f.arrive(flowcell.MakePlace(at, uint8(at%4)))
			sent++
			for rng.IntN(3) == 0 {
				f.arrive(flowcell.Place(rng.Uint32()))
				sent++
			}
		}
		f.expire(f.now + datagramHolds*resequencer.DefaultHold)
		if len(f.out) != sent {
			t.Errorf("seed %d: %d of %d delivered after a hold", seed, len(f.out), sent)
		}
	}
}
