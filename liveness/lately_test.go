package liveness

import (
	"math/rand/v2"
	"testing"
	"time"
)

// It is what a list of all losses says of the same halves of time.
func TestLately(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		var got evidence
		type event struct {
			slot       int32
			sent, lost int
		}
		var all []event
		now := time.Duration(random.IntN(int(time.Minute)))
		begin := now
		for range 400 {
			now += time.Duration(random.IntN([]int{1e7, 1e8, 1e9, 2e10}[random.IntN(4)]))
			e := event{int32(now / slotTime), random.IntN(20), random.IntN(4)}
			got.add(now, e.sent, e.lost)
			all = append(all, e)

			first := (e.slot/halfTime - 1) * halfTime
			var want Lately
			lost := map[int32]float32{}
			for _, e := range all {
				if e.slot >= first {
					want.Sent += float32(e.sent)
					want.Lost += float32(e.lost)
					lost[e.slot] += float32(e.lost)
				}
			}
			for _, n := range lost {
				want.Squares += n * n
			}
			want.Slots = float32(e.slot - max(first, 0) + 1)
			if s := got.sum(now); s != want {
				t.Fatalf("seed %d, from %v to %v: %+v, want %+v", seed, begin, now, s, want)
			}
		}
	}
}
