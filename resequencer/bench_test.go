package resequencer

import (
	"math/rand/v2"
	"testing"
	"time"
)

// arrivals returns the order in which n segments arrive.
func arrivals(n int, kind string) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	switch kind {
	case "4 paths": // one path is 3 packets behind, one 5, one 6
		for i := 1; i+7 < n; i += 8 {
			copy(order[i:], []int{i + 3, i, i + 4, i + 6, i + 1, i + 7, i + 2, i + 5})
		}
	case "1 % late": // by 50 packets
		rng := rand.New(rand.NewPCG(6, 0))
		for i := 1; i+51 < n; i++ {
			if rng.IntN(100) == 0 {
				late := order[i]
				copy(order[i:], order[i+1:i+51])
				order[i+50] = late
			}
		}
	}
	return order
}

// feed pushes one round of segments and returns the next round's base.
func feed(b *Buffer[int], order []int, base uint32, now time.Duration, out []int) uint32 {
	s := Segment{Flow: tuple(1), Payload: 1448, Size: 1500, Flags: 1 << 4}
	for _, i := range order {
		s.Seq = base + 1448*uint32(i)
		out = b.Push(s, i, now, out[:0])
	}
	return base + 1448*uint32(len(order))
}

var kinds = []string{"in order", "4 paths", "1 % late"}

func TestPush_allocatesNothingOnceWarm(t *testing.T) {
	for _, kind := range kinds {
		order := arrivals(1000, kind)
		b := New[int](Config{})
		out := make([]int, 0, 1000)
		base := feed(b, order, 0, 0, out)
		n := testing.AllocsPerRun(10, func() { base = feed(b, order, base, 0, out) })
		if n != 0 {
			t.Errorf("%s: %v allocations in 1000 packets", kind, n)
		}
		if s := b.Stats(); s.HeldPackets != 0 || s.DeliveredOutOfOrder != 0 || (s.Filled > 0) != (kind != "in order") {
			t.Errorf("%s: %+v", kind, s)
		}
	}
}

func BenchmarkPush(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind, func(b *testing.B) {
			order := arrivals(1000, kind)
			r := New[int](Config{})
			out := make([]int, 0, 1000)
			base := uint32(0)
			b.ReportAllocs()
			for range b.N/len(order) + 1 {
				base = feed(r, order, base, 0, out)
			}
		})
	}
}
