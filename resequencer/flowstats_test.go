package resequencer

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/flowcell"
)

// Whatever order segments of a few flows come in, each flow's counters are what an onlooker sees:
// a segment below the highest of its flow before it is out of order, and one that Push does not
// hand on waits. Together they are the Buffer's.
func TestFlowStats_asSeenFromOutside(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 8))
		b := New[int](Config{Discipline: Sequence})
		const flows, segments = 3, 60
		type arrival struct {
			flow int
			s    flowcell.Packet
			key  float64
		}
		var list []arrival
		for f := range flows {
			for i := range segments {
				s := of(f, data(i))
				list = append(list, arrival{f, s, float64(i) + 4*r.Float64()*float64(r.IntN(2))})
				if i > 0 && r.IntN(20) == 0 { // sent twice
					list = append(list, arrival{f, s, float64(i) + 4*r.Float64()})
				}
			}
		}
		slices.SortStableFunc(list, func(a, b arrival) int {
			switch {
			case a.key < b.key:
				return -1
			case a.key > b.key:
				return 1
			}
			return 0
		})
		var want [flows]FlowStats
		var highest [flows]uint32
		var begun [flows]bool
		now := time.Duration(0)
		for id, a := range list {
			now += time.Duration(r.IntN(20)) * time.Microsecond
			if begun[a.flow] && ahead(a.s.Seq, highest[a.flow]) < 0 {
				want[a.flow].OutOfOrder++
			}
			if end := a.s.Seq + uint32(a.s.Payload); !begun[a.flow] || ahead(end, highest[a.flow]) > 0 {
				highest[a.flow], begun[a.flow] = end, true
			}
			if out := b.Push(&a.s, id, now, nil); !slices.Contains(out, id) {
				want[a.flow].Held++
			}
		}
		var sum FlowStats
		for f := range flows {
			key := of(f, data(0)).Flow
			got, ok := b.FlowStats(&key)
			if !ok || got != want[f] {
				t.Errorf("seed %d: flow %d has %+v, %v; want %+v", seed, f, got, ok, want[f])
			}
			sum.OutOfOrder += got.OutOfOrder
			sum.Held += got.Held
		}
		s := b.Stats()
		if released := s.Filled + s.TimedOut + s.Bound + s.Flushed + uint64(s.HeldPackets); sum.OutOfOrder != s.ArrivedOutOfOrder || sum.Held < released || sum.Held == 0 {
			t.Errorf("seed %d: %+v together, and the Buffer %+v", seed, sum, s)
		}
	}
}

// A new connection with the ports of an old one begins at 0, and one that is not known has none.
func TestFlowStats_ofANewConnection(t *testing.T) {
	b := New[int](Config{Discipline: Sequence})
	key := data(0).Flow
	if _, ok := b.FlowStats(&key); ok {
		t.Error("one that never was is known")
	}
	for _, i := range []int{0, 2, 1} {
		s := data(i)
		b.Push(&s, i, 0, nil)
	}
	if s, _ := b.FlowStats(&key); s != (FlowStats{OutOfOrder: 1, Held: 1}) {
		t.Errorf("%+v", s)
	}
	syn := with(data(1000), flowcell.FlagSYN)
	b.Push(&syn, 3, 0, nil)
	if s, ok := b.FlowStats(&key); !ok || s != (FlowStats{}) {
		t.Errorf("after a SYN: %+v", s)
	}
}
