package drb

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A path that weighs w comes w times, and at every switch every prefix of the
// packets that come by has given each branch its share by weight, rounded up or
// down.
func TestInterleave_sharesByWeight(t *testing.T) {
	const seed = 29
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, bases := range append(slices.Clone(manyBases), []int{2, 2}, []int{3, 3}, []int{8, 8}) {
		for range 40 {
			var live []int
			for p := range product(bases) {
				for range rng.IntN(5) {
					live = append(live, p)
				}
			}
			order := interleave(bases, live)
			if got := slices.Sorted(slices.Values(order)); !slices.Equal(got, live) {
				t.Fatalf("seed %d: Interleave(%v, %v) = %v", seed, bases, live, order)
			}
			if err := shared(order, bases); err != nil {
				t.Fatalf("seed %d: Interleave(%v, %v) = %v: %v", seed, bases, live, order, err)
			}
		}
	}
}

// Equal weights, however large, are the order without weights, over and over.
func TestOrder_equalWeightsAreNone(t *testing.T) {
	for _, bases := range manyBases {
		for weight := 1; weight <= 3; weight++ {
			var live, once []int
			for p := 0; p < product(bases); p += 1 + p%2 { // with holes
				once = append(once, p)
				for range weight {
					live = append(live, p)
				}
			}
			want := slices.Repeat(once, weight)
			if got := RoundRobin.Order(bases, live); !slices.Equal(got, want) {
				t.Fatalf("round robin of %v in %v: %v, want %v", live, bases, got, want)
			}
			whole := slices.Repeat(interleave(bases, upTo(product(bases))), weight)
			if got := interleave(bases, slices.Sorted(slices.Values(whole))); !slices.Equal(got, whole) {
				t.Fatalf("%v, all %d times: %v, want %v", bases, weight, got, whole)
			}
		}
	}
}

func TestOrder_weighted(t *testing.T) {
	for _, c := range []struct {
		rule              Rule
		bases, live, want []int
	}{
		{RoundRobin, []int{3}, []int{0, 0, 1, 2}, []int{0, 1, 0, 2}},
		{RoundRobin, []int{2, 2}, []int{0, 0, 1, 2, 3}, []int{0, 1, 0, 2, 3}},
		{RoundRobin, []int{4}, []int{1, 3, 3, 3}, []int{3, 1, 3, 3}},
		{DigitReversal, []int{3}, []int{0, 0, 1, 2}, []int{0, 1, 0, 2}},
		// The faster uplink has two of three visits, its cores in turn.
		{DigitReversal, []int{2, 2}, []int{0, 0, 1, 1, 2, 3}, []int{0, 2, 1, 3, 0, 1}},
		{DigitReversal, []int{2, 2}, []int{0, 0, 0, 1}, []int{0, 1, 0, 0}},
		{Random, []int{3}, []int{0, 0, 1, 2}, []int{0, 0, 1, 2}},
		{Hash, []int{3}, []int{0, 0, 1, 2}, []int{0, 0, 1, 2}},
	} {
		if got := c.rule.Order(c.bases, c.live); !slices.Equal(got, c.want) {
			t.Errorf("%v of %v in %v: %v, want %v", c.rule, c.live, c.bases, got, c.want)
		}
	}
}

// Every rule gives each path its weight, whatever it does besides.
func TestSelector_takesPathsByWeight(t *testing.T) {
	live := []int{0, 0, 0, 1, 5, 5}
	for r := DigitReversal; r <= Hash; r++ {
		s := NewSelector(r, r.Order([]int{3, 2}, live), 3)
		rng := rand.New(rand.NewPCG(31, 0))
		const n = 12000
		counts := map[int]int{}
		for range n {
			p, _ := s.Next(rng.Uint64())
			counts[p]++
		}
		for p, weight := range map[int]int{0: 3, 1: 1, 5: 2} {
			if want := n * weight / 6; counts[p] < want*9/10 || counts[p] > want*11/10 {
				t.Errorf("%v: path %d is taken %d times of %d, want about %d", r, p, counts[p], n, want)
			}
		}
	}
}

func BenchmarkInterleaveLarge(b *testing.B) {
	bases := []int{24, 24} // k=48
	doubled := slices.Clone(upTo(576))
	for p := range 24 {
		doubled = append(doubled, p)
	}
	slices.Sort(doubled)
	for name, live := range map[string][]int{
		"whole":            upTo(576),
		"one path dead":    upTo(575),
		"an uplink dead":   upTo(552),
		"a faster uplink":  doubled,
		"at the bound":     bound(),
		"all but the last": upTo(574)[1:],
	} {
		b.Run(fmt.Sprint(name, " ", len(live)), func(b *testing.B) {
			for b.Loop() {
				interleave(bases, live)
			}
		})
	}
}

// bound are weights as awkward and as many as package topology gives.
func bound() (live []int) {
	for p := range 576 {
		for range 1 + p*13%7 + 12*(p%24/23) {
			live = append(live, p)
		}
	}
	return live
}
