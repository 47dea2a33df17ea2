package resequencer

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weft/flowcell"
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
	case "4 cells", "16 cells": // flowcells of 45 segments that arrive interleaved
		paths := map[string]int{"4 cells": 4, "16 cells": 16}[kind]
		for i := 0; i+45*paths <= n; i += 45 * paths {
			for j := range 45 * paths {
				order[i+j] = i + j%paths*45 + j/paths
			}
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

// feeder pushes round after round of segments in one order.
type feeder struct {
	order []int
	ids   []uint16 // by segment of the first round
	step  uint16   // added to them in each round
	round uint32
	out   []int
}

func newFeeder(kind string) *feeder {
	f := &feeder{order: arrivals(7200, kind), out: make([]int, 0, 8192), step: 7200}
	for n := range f.order {
		id := uint16(n) // counted
		if strings.HasSuffix(kind, "cells") {
			id = uint16(flowcell.MakeNumber(uint16(n/45), uint8(n%45)))
			f.step = uint16(flowcell.MakeNumber(7200/45, 0))
		}
		f.ids = append(f.ids, id)
	}
	return f
}

func (f *feeder) feed(b *Buffer[int], now time.Duration) {
	s := flowcell.Packet{Flow: tuple(1), Payload: 1448, Length: 1500, Flags: flowcell.FlagACK}
	base, id := f.round*7200*1448, uint16(f.round)*f.step
	for _, i := range f.order {
		s.Seq = base + 1448*uint32(i)
		s.ID = id + f.ids[i]
		f.out = b.Push(&s, i, now, f.out[:0])
	}
	f.round++
}

var kinds = []string{"in order", "4 paths", "4 cells", "16 cells", "1 % late"}

func TestPush_allocatesNothingOnceWarm(t *testing.T) {
	for _, d := range []Discipline{Presto, Sequence, Juggler} {
		for _, kind := range kinds {
			f, b := newFeeder(kind), New[int](Config{Discipline: d})
			f.feed(b, 0)
			if n := testing.AllocsPerRun(10, func() { f.feed(b, 0) }); n != 0 {
				t.Errorf("%v, %s: %v allocations in 7200 packets", d, kind, n)
			}
			b.Expire(b.config.Merge, f.out[:0])
			if s := b.Stats(); s.HeldPackets != 0 || s.DeliveredOutOfOrder != 0 || (s.Filled > 0) != (kind != "in order") {
				t.Errorf("%v, %s: %+v", d, kind, s)
			}
		}
	}
}

func BenchmarkPush(b *testing.B) {
	for _, d := range []Discipline{Presto, Sequence, Juggler} {
		for _, kind := range kinds {
			b.Run(d.String()+"/"+kind, func(b *testing.B) {
				f, r := newFeeder(kind), New[int](Config{Discipline: d})
				f.feed(r, 0)
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N/len(f.order) + 1 {
					f.feed(r, 0)
				}
			})
		}
	}
}
