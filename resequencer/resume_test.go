package resequencer

import (
	"slices"
	"testing"
	"time"

	"weft/flowcell"
)

func resumed(t *testing.T, c Config) (b *Buffer[uint32], flow flowcell.FiveTuple, push func(seq uint32, now time.Duration) []uint32) {
	t.Helper()
	b = New[uint32](c)
	flow = flowcell.FiveTuple{Proto: flowcell.ProtoTCP, SrcPort: 1, DstPort: 2}
	return b, flow, func(seq uint32, now time.Duration) []uint32 {
		return b.Push(&flowcell.Packet{Flow: flow, Seq: seq, Payload: 100}, seq, now, nil)
	}
}

// A flow of which the Buffer has seen nothing has a place all the same.
func TestResume_unknownFlow(t *testing.T) {
	b, flow, push := resumed(t, Config{})
	if _, _, ok := b.Place(&flow); ok {
		t.Fatal("known")
	}
	b.Resume(&flow, 1000, 0)
	if out := push(1100, 0); len(out) != 0 {
		t.Errorf("behind a hole: %v", out)
	}
	if next, waits, ok := b.Place(&flow); next != 1000 || !waits || !ok {
		t.Errorf("place %d, %v, %v", next, waits, ok)
	}
	if out := push(1000, 1); !slices.Equal(out, []uint32{1000, 1100}) {
		t.Errorf("%v", out)
	}
	if next, waits, ok := b.Place(&flow); next != 1200 || waits || !ok {
		t.Errorf("place %d, %v, %v", next, waits, ok)
	}
}

// Data that went past the Buffer leaves no hole. While one is waited for, Resume does nothing.
func TestResume_movesOn(t *testing.T) {
	b, flow, push := resumed(t, Config{})
	push(0, 0)
	b.Resume(&flow, 500000, 1)
	if out := push(500000, 2); len(out) != 1 {
		t.Errorf("in order: %v", out)
	}
	if out := push(500200, 3); len(out) != 0 {
		t.Errorf("behind a hole: %v", out)
	}
	b.Resume(&flow, 500200, 4)
	if out := push(500100, 5); !slices.Equal(out, []uint32{500100, 500200}) {
		t.Errorf("%v", out)
	}
}

// fill has holes that are filled after 200 µs, so that the flow's hold becomes short. It
// returns where the flow goes on, and when.
func fill(b *Buffer[uint32], flow *flowcell.FiveTuple, push func(uint32, time.Duration) []uint32) (seq uint32, now time.Duration) {
	push(0, 0)
	for seq = 100; seq < 50000; seq += 200 {
		b.Resume(flow, seq, now)
		push(seq+100, now)
		now += 200 * time.Microsecond
		push(seq, now)
	}
	return seq, now
}

// The Buffer wants to see what fills a hole that it has given up, for as long as it would
// have waited at most. Else holds that are too short would stay so.
func TestPlace_waitsForWhatIsLate(t *testing.T) {
	const hold = 10 * time.Millisecond
	for _, late := range []bool{false, true} {
		b, flow, push := resumed(t, Config{Hold: hold})
		seq, now := fill(b, &flow, push)
		b.Resume(&flow, seq, now)
		push(seq+100, now)
		at, _ := b.NextDeadline()
		if out := b.Expire(at, nil); len(out) != 1 || at-now >= hold {
			t.Fatalf("expired: %v, after %v", out, at-now)
		}
		if next, waits, _ := b.Place(&flow); next != seq+200 || !waits {
			t.Errorf("given up: place %d, %v", next, waits)
		}
		if late {
			push(seq, at+hold/2)
		} else {
			b.Expire(now+hold, nil)
		}
		if _, waits, _ := b.Place(&flow); waits || late != (b.Stats().TimeoutsLate == 1) {
			t.Errorf("late %v: waits %v, %+v", late, waits, b.Stats())
		}
	}
}

// What is known of a flow's delays stays.
func TestResume_keepsDelays(t *testing.T) {
	b, flow, push := resumed(t, Config{})
	seq, now := fill(b, &flow, push)
	b.Resume(&flow, seq, now)
	push(seq+100, now)
	if at, ok := b.NextDeadline(); !ok || at-now > time.Millisecond {
		t.Errorf("waits %v, after holes of 200 µs", at-now)
	}
}

// A flow that makes room for another takes nothing with it.
func TestResume_forgetsNoPackets(t *testing.T) {
	b := New[uint32](Config{Flows: 1})
	pushed, got := 0, 0
	for i := range uint32(100) {
		flow := flowcell.FiveTuple{Proto: flowcell.ProtoTCP, SrcPort: uint16(i), DstPort: 2}
		b.Resume(&flow, 0, 0)
		got += len(b.Push(&flowcell.Packet{Flow: flow, Seq: 100, Payload: 100}, i, 0, nil))
		pushed++
	}
	got += len(b.Expire(time.Second, nil))
	if got != pushed || b.Stats().FlowsEvicted == 0 {
		t.Errorf("%d of %d come out, %+v", got, pushed, b.Stats())
	}
}

// Segments that are all far ahead are where the flow is, though Resume says otherwise
// before each.
func TestResume_leaps(t *testing.T) {
	b, flow, push := resumed(t, Config{})
	push(0, 0)
	const far = 1 << 30
	for i := range uint32(10) {
		next, _, _ := b.Place(&flow)
		b.Resume(&flow, next, 0)
		push(far+i*100, 0)
	}
	if next, _, _ := b.Place(&flow); next != far+1000 || b.Stats().Leaps != 1 {
		t.Errorf("place %d, %+v", next, b.Stats())
	}
}

// What is given up is not waited for; what lies above is.
func TestGiveUp(t *testing.T) {
	b, flow, push := resumed(t, Config{})
	push(0, 0)
	for _, seq := range []uint32{300, 200, 500, 700} {
		if out := push(seq, 1); len(out) != 0 {
			t.Fatalf("%d: %v", seq, out)
		}
	}
	if out := b.GiveUp(&flow, 499, nil); !slices.Equal(out, []uint32{200, 300}) {
		t.Errorf("below 499: %v", out)
	}
	if out := b.GiveUp(&flow, 500, nil); !slices.Equal(out, []uint32{500}) {
		t.Errorf("below 500: %v", out)
	}
	if out := push(600, 2); !slices.Equal(out, []uint32{600, 700}) {
		t.Errorf("the next hole: %v", out)
	}
	other := flow
	other.SrcPort++
	if out := b.GiveUp(&other, 1000, nil); len(out) != 0 {
		t.Errorf("an unknown flow: %v", out)
	}
}
