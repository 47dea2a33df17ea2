package resequencer

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"weft/flowcell"
	"weft/internal/slowtest"
)

// flood sends segments of flows that are never seen again, each leaving a hole.
type flood struct{ n uint32 }

var elsewhere = flowcell.AddressFrom(netip.MustParseAddr("10.9.9.9"))

// next returns the two segments of the next flow.
func (f *flood) next() (first, second flowcell.Packet) {
	f.n++
	first = data(1)
	first.Flow.SrcPort, first.Flow.DstPort = uint16(f.n>>16), uint16(f.n)
	first.Flow.Src = elsewhere
	second = first
	second.Seq += 200
	return first, second
}

// steady sends flowcells that arrive interleaved.
type steady struct {
	flow  flowcell.FiveTuple
	order []int
	at    int
	round uint32
}

func newSteady(i int) *steady {
	f := tuple(i)
	f.DstPort = 443
	f.Proto = flowcell.ProtoTCP
	f.Src = flowcell.Address{}
	return &steady{flow: f, order: arrivals(7200, "4 cells")}
}

// next returns the next segment and its place in the flow.
func (e *steady) next() (flowcell.Packet, int) {
	if e.at == len(e.order) {
		e.at = 0
		e.round++
	}
	n := int(e.round)*len(e.order) + e.order[e.at]
	e.at++
	s := flowcell.Packet{Flow: e.flow, Seq: 1448 * uint32(n), Payload: 1448, Length: 1500, Flags: flowcell.FlagACK}
	s.ID = uint16(flowcell.MakeNumber(uint16(n/45), uint8(n%45)))
	return s, n
}

// A million flows that each leave a hole: memory stays within its bounds, and
// the flows that were there before keep their order and their place.
func TestPush_floodOfFlows(t *testing.T) {
	flows := 1_000_000
	if slowtest.Small() {
		flows = 200_000
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)

	c := Config{}.withDefaults()
	b := New[int](c)
	good := make([]*steady, 50)
	last := make([]int, len(good)) // delivered of each
	for i := range good {
		good[i] = newSteady(i)
		last[i] = -1
	}
	const mine = 1 << 20 // packets of good flow i are named i*mine + place
	var out []int
	deliver := func() {
		for _, p := range out {
			if p < 0 {
				continue
			}
			if i := p / mine; p%mine != last[i]+1 {
				t.Fatalf("flow %d: %d after %d", i, p%mine, last[i])
			} else {
				last[i] = p % mine
			}
		}
		out = out[:0]
	}
	push := func(i int, now time.Duration) {
		s, n := good[i].next()
		out = b.Push(&s, i*mine+n, now, out)
		deliver()
	}
	for range 200 {
		for i := range good {
			push(i, 0)
		}
	}
	var f flood
	now := time.Duration(0)
	for n := range flows {
		now += time.Microsecond // a million flows a second
		first, second := f.next()
		out = b.Push(&first, -1, now, out)
		out = b.Push(&second, -1, now, out)
		push(n%len(good), now)
		out = b.Expire(now, out)
		deliver()
	}
	s := b.Stats()
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d flows: at most %d packets, %d bytes held; %d KiB of memory; %+v",
		flows, s.MaxHeldPackets, s.MaxHeldBytes, (after.HeapAlloc-before.HeapAlloc)>>10, s)
	if s.MaxHeldPackets > c.TotalPackets || s.MaxHeldBytes > c.TotalBytes || s.Flows > c.Flows || s.FlowsEvicted == 0 {
		t.Errorf("bounds: %+v", s)
	}
	// The table, and what is held: a bound that does not depend on the flood.
	if used := after.HeapAlloc - before.HeapAlloc; used > 64<<20 {
		t.Errorf("%d MiB of memory", used>>20)
	}
	if s.DeliveredOutOfOrder != 0 {
		t.Errorf("order was lost: %+v", s)
	}
	for i := range good {
		k := good[i].flow
		if b.flows.Get(&k, now) == nil {
			t.Errorf("flow %d was forgotten", i)
		}
	}
	runtime.KeepAlive(b)
}

// A flow whose every second segment is missing, in the worst order to come:
// finding the place of each must not take time in proportion to their number.
func TestPush_manyHolesAreFoundFast(t *testing.T) {
	b := New[int](Config{})
	s := data(0)
	b.Push(&s, 0, 0, nil)
	const n = DefaultFlowPackets
	for i := range n {
		s := data(2 + 2*(i*4099%n)) // scattered: 4099 is prime
		b.Push(&s, i, 0, nil)
	}
	k := tuple(1)
	h := b.flows.Get(&k, 0).held
	worst, sum := 0, 0
	for i := range n {
		steps := 0
		at := &h.head
		for l := levels - 1; l >= 0; l-- {
			for r := at[l]; r != nil && ahead(r.start, uint32(100*(2+2*i))) <= 0; r = at[l] {
				at = &r.next
				steps++
			}
		}
		worst, sum = max(worst, steps), sum+steps
	}
	t.Logf("%d holes: %.1f steps, at most %d", n, float64(sum)/n, worst)
	if worst > n/16 || sum/n > n/64 {
		t.Errorf("%d holes: %.1f steps, at most %d", n, float64(sum)/n, worst)
	}
}

// What a flood costs those who were there before: compare the two.
func BenchmarkPush_duringFlood(b *testing.B) {
	for _, flooded := range []bool{false, true} {
		b.Run(map[bool]string{false: "alone", true: "flooded"}[flooded], func(b *testing.B) {
			r := New[int](Config{})
			good := newSteady(1)
			var f flood
			var out []int
			now := time.Duration(0)
			for range 100_000 { // warm
				s, n := good.next()
				out = r.Push(&s, n, now, out[:0])
			}
			for b.Loop() {
				now += time.Microsecond
				s, n := good.next()
				out = r.Push(&s, n, now, out[:0])
				if flooded {
					first, second := f.next()
					out = r.Push(&first, -1, now, out[:0])
					out = r.Push(&second, -1, now, out[:0])
				}
				out = r.Expire(now, out[:0])
			}
			if r.Stats().DeliveredOutOfOrder != 0 {
				b.Error("order was lost")
			}
		})
	}
}
