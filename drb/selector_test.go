package drb

import (
	"slices"
	"testing"
)

var bases44, live16 = []int{4, 4}, upTo(16)

func TestSelector_noLivePath(t *testing.T) {
	for r := DigitReversal; r <= Hash; r++ {
		s := NewSelector(r, r.Order(bases44, nil), 1)
		s.StartAt(3)
		if p, ok := s.Next(7); ok {
			t.Errorf("%v: path %d of none", r, p)
		}
	}
	var zero Selector
	if _, ok := zero.Next(0); ok {
		t.Error("the zero Selector has a path")
	}
}

func TestSelector_cyclesFromItsStart(t *testing.T) {
	for r, want := range map[Rule][]int{
		DigitReversal: {0, 2, 1, 3},
		RoundRobin:    {0, 1, 2, 3},
	} {
		for start := range 8 {
			s := NewSelector(r, r.Order([]int{2, 2}, upTo(4)), 1)
			s.StartAt(start)
			for i := range 9 {
				if p, ok := s.Next(uint64(i)); !ok || p != want[(start+i)%4] {
					t.Fatalf("%v from %d: step %d takes path %d, %v; want %d", r, start, i, p, ok, want[(start+i)%4])
				}
			}
		}
	}
}

func TestSelector_roundRobinSkipsTheDead(t *testing.T) {
	live := []int{1, 4, 5, 11}
	s := NewSelector(RoundRobin, RoundRobin.Order(bases44, live), 1)
	s.StartAt(0)
	for i := range 12 {
		if p, _ := s.Next(0); p != live[i%4] {
			t.Fatalf("step %d takes path %d, want %d", i, p, live[i%4])
		}
	}
}

// chiSquare is that of counts against a uniform distribution.
func chiSquare(counts map[int]int, cells, n int) (x float64) {
	e := float64(n) / float64(cells)
	for _, c := range counts {
		x += (float64(c) - e) * (float64(c) - e) / e
	}
	return x + e*float64(cells-len(counts))
}

// 37.7 is exceeded once in 1,000 at 15 degrees of freedom.
const chiSquare15 = 37.7

func TestSelector_randomIsUniform(t *testing.T) {
	const n = 16000
	for seed := range uint64(5) {
		s := NewSelector(Random, Random.Order(bases44, live16), seed)
		counts, pairs := map[int]int{}, map[int]int{}
		last := 0
		for range n {
			p, ok := s.Next(0)
			if !ok {
				t.Fatal("no path")
			}
			counts[p]++
			pairs[(p-last+16)%16]++ // a step of any length is as likely
			last = p
		}
		if x := chiSquare(counts, 16, n); x > chiSquare15 {
			t.Errorf("seed %d: paths taken %v times, chi² %.1f", seed, counts, x)
		}
		if x := chiSquare(pairs, 16, n); x > chiSquare15 {
			t.Errorf("seed %d: steps taken %v times, chi² %.1f", seed, pairs, x)
		}
	}
}

func TestSelector_hashIsConstantPerFlow(t *testing.T) {
	s := NewSelector(Hash, Hash.Order(bases44, live16), 1)
	used := map[int]bool{}
	for h := range uint64(64) {
		first, ok := s.Next(h)
		for range 5 {
			s.Next(h + 1)
			if p, _ := s.Next(h); !ok || p != first {
				t.Fatalf("hash %d takes paths %d and %d", h, first, p)
			}
		}
		used[first] = true
	}
	if len(used) != 16 {
		t.Errorf("64 hashes use %d paths of 16", len(used))
	}
	// Of which selector it is does not matter.
	u := NewSelector(Hash, Hash.Order(bases44, live16), 2)
	a, _ := s.Next(12345)
	if b, _ := u.Next(12345); a != b {
		t.Errorf("another seed takes path %d for %d", b, a)
	}
}

func TestNewSelector_startsAnywhere(t *testing.T) {
	for _, r := range []Rule{DigitReversal, RoundRobin} {
		order := r.Order(bases44, live16)
		counts := map[int]int{}
		const n = 1600
		for seed := range uint64(n) {
			s := NewSelector(r, order, seed)
			p, _ := s.Next(0)
			counts[p]++
			again := NewSelector(r, order, seed)
			if q, _ := again.Next(0); p != q {
				t.Fatalf("%v: seed %d starts with %d and %d", r, seed, p, q)
			}
		}
		if x := chiSquare(counts, 16, n); len(counts) != 16 || x > chiSquare15 {
			t.Errorf("%v: starts %v, chi² %.1f", r, counts, x)
		}
	}
}

func TestOrder_isSharedUnharmed(t *testing.T) {
	for r := DigitReversal; r <= Hash; r++ {
		order := r.Order(bases44, live16)
		before := slices.Clone(order)
		a, b := NewSelector(r, order, 1), NewSelector(r, order, 1)
		for i := range 40 {
			p, _ := a.Next(uint64(i))
			if q, _ := b.Next(uint64(i)); p != q {
				t.Fatalf("%v: two selectors of one seed differ at step %d", r, i)
			}
		}
		if !slices.Equal(order, before) {
			t.Errorf("%v: a selector changed its order", r)
		}
	}
}

func TestRule_names(t *testing.T) {
	for r, want := range map[Rule]string{DigitReversal: "digit reversal", RoundRobin: "round robin", Random: "random", Hash: "hash"} {
		if r.String() != want {
			t.Errorf("%v, want %s", r, want)
		}
	}
}

func TestNext_allocatesNothing(t *testing.T) {
	for r := DigitReversal; r <= Hash; r++ {
		s := NewSelector(r, r.Order(bases44, live16), 1)
		if n := testing.AllocsPerRun(100, func() { s.Next(3) }); n != 0 {
			t.Errorf("%v: %v allocations", r, n)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for r := DigitReversal; r <= Hash; r++ {
		b.Run(r.String(), func(b *testing.B) {
			s := NewSelector(r, r.Order(bases44, live16), 1)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Next(uint64(i))
			}
		})
	}
}

func BenchmarkInterleave(b *testing.B) {
	bases, live := []int{12, 12}, upTo(143) // k=24, one path dead
	for b.Loop() {
		interleave(bases, live)
	}
}
