package resequencer

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/flowcell"
)

// Flows that the caller keeps are put in order as those in the Buffer's table are.
func TestPushKept_isPush(t *testing.T) {
	happened := map[Discipline]Stats{}
	for seed := range uint64(fewer(60)) {
		rng := rand.New(rand.NewPCG(seed, 4))
		c := Config{Discipline: Discipline(seed % 4), PeerPackets: 12, TotalPackets: 20, FlowPackets: 9, Seed: seed}
		plain, kept := New[int](c), New[int](c)
		var all []arrival
		for n := range 4 {
			f := fabric{
				seed: seed*4 + uint64(n), segments: 300, calm: rng.IntN(60), cell: 1 + rng.IntN(20),
				paths: []time.Duration{0, time.Duration(rng.IntN(400)) * time.Microsecond, 80 * time.Microsecond},
				id:    []string{"numbered", "labelled", "counted", "zero", "random"}[rng.IntN(5)],
				loss:  .02, copies: .01,
			}
			for _, a := range f.send() {
				a.s.Flow.SrcPort = uint16(n)
				a.s.Flow.Src = address(n % 2)
				if rng.IntN(200) == 0 {
					a.s.Flags |= []uint8{flowcell.FlagRST, flowcell.FlagFIN, flowcell.FlagSYN}[rng.IntN(3)]
				}
				all = append(all, a)
			}
		}
		slices.SortStableFunc(all, func(a, b arrival) int { return int(a.at - b.at) })
		flows := make([]Kept[int], 4)
		for i, a := range all {
			k := &flows[a.s.Flow.SrcPort]
			want := plain.Push(&a.s, i, a.at, nil)
			if k.flow.kept {
				a.s.Flow = flowcell.FiveTuple{Proto: flowcell.ProtoTCP} // the rest does not count any more
			}
			got := kept.PushKept(k, &a.s, i, a.at, nil)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, packet %d: delivers %v, want %v", seed, i, got, want)
			}
			if rng.IntN(10) == 0 {
				want, got = plain.Expire(a.at, nil), kept.Expire(a.at, nil)
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, packet %d: expire delivers %v, want %v", seed, i, got, want)
				}
			}
		}
		if want, got := plain.Flush(nil), kept.Flush(nil); !slices.Equal(got, want) {
			t.Fatalf("seed %d: flush delivers %v, want %v", seed, got, want)
		}
		if want, got := fmt.Sprint(plain.Stats()), fmt.Sprint(kept.Stats()); got != want {
			t.Errorf("seed %d: counts %v, want %v", seed, got, want)
		}
		s, sum := plain.Stats(), happened[c.Discipline]
		sum.Filled, sum.Bound, sum.TimedOut = sum.Filled+s.Filled, sum.Bound+s.Bound, sum.TimedOut+s.TimedOut
		happened[c.Discipline] = sum
		for i := range flows {
			kept.Forget(&flows[i])
			kept.Forget(&flows[i])
		}
		if n := kept.Stats().Flows; n != 0 {
			t.Errorf("seed %d: %d flows after all are forgotten", seed, n)
		}
	}
	// With one seed there may be no hole that is filled before the bounds are met.
	for d, s := range happened {
		if d != Off && (s.Filled == 0 || s.Bound+s.TimedOut == 0) {
			t.Errorf("discipline %v: little happens: %+v", d, s)
		}
	}
}

func address(n int) flowcell.Address {
	return flowcell.AddressFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}))
}

// A kept flow finds its peer again when the Buffer has forgotten it and made another one.
func TestPushKept_peerIsEvicted(t *testing.T) {
	b := New[int](Config{Discipline: Sequence, Flows: 1})
	var flows [3]Kept[int]
	for round := range 3 {
		for n := range flows {
			s := data(10 * round)
			s.Flow.Src = address(n)
			b.PushKept(&flows[n], &s, n, 0, nil)
		}
	}
	sum := 0
	for h := b.holding.next; h.of != nil; h = h.next {
		sum += h.of.packets
		if got := h.of.peer.packets; got != h.of.packets {
			t.Errorf("a flow holds %d packets, its peer %d", h.of.packets, got)
		}
	}
	if sum != b.Stats().HeldPackets || sum == 0 {
		t.Errorf("flows hold %d packets, want %d", sum, b.Stats().HeldPackets)
	}
}
