package sim

import (
	"math/rand/v2"
	"testing"
)

// TestOrder_arrived counts, for each packet, those sent later that came before it.
func TestOrder_arrived(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rng.IntN(200)
		sequence := make([]uint32, n)
		for i := range sequence {
			sequence[i] = uint32(i)
		}
		for i := range sequence { // some far away, some lost
			j := min(i+rng.IntN(1+rng.IntN(60)), n-1)
			sequence[i], sequence[j] = sequence[j], sequence[i]
		}
		sequence = sequence[:1+rng.IntN(n)]
		var o order
		for i, p := range sequence {
			want, top := 0, uint32(0)
			for _, q := range sequence[:i] {
				if top = max(top, q); q > p {
					want++
				}
			}
			got := o.arrived(p)
			if top > p+63 {
				want = 63 // as far as is remembered
			}
			if got != want {
				t.Fatalf("seed %d: packet %d of %v: behind %d, want %d", seed, i, sequence, got, want)
			}
		}
	}
}
