package histogram

import (
	"math/rand/v2"
	"testing"
	"time"
)

// place is what Observe does by a logarithm, by comparison with each bound.
func place(d time.Duration) int {
	for i := range Buckets {
		if d <= Bound(i) {
			return i
		}
	}
	return Buckets
}

func TestObserve_asByComparison(t *testing.T) {
	durations := []time.Duration{-time.Hour, -1, 0, 1, First - 1, First, First + 1, time.Hour, 1<<63 - 1}
	for i := range Buckets {
		durations = append(durations, Bound(i)-1, Bound(i), Bound(i)+1)
	}
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	for range 10_000 {
		durations = append(durations, time.Duration(r.Int64())>>r.IntN(63))
	}
	for _, d := range durations {
		var h Histogram
		h.Observe(d)
		if i := place(d); h.Counts[i] != 1 || h.Count() != 1 || h.Sum != max(d, 0) {
			t.Errorf("seed %d: %d ns: %v, want one in bucket %d", seed, d, h, i)
		}
	}
}

func TestAdd(t *testing.T) {
	var a, b, all Histogram
	for i := range 40 {
		d := time.Duration(1) << i
		all.Observe(d)
		if i%3 == 0 {
			a.Observe(d)
		} else {
			b.Observe(d)
		}
	}
	if a.Add(&b); a != all {
		t.Errorf("%v, want %v", a, all)
	}
}

func TestObserve_allocatesNothing(t *testing.T) {
	var h Histogram
	if n := testing.AllocsPerRun(100, func() { h.Observe(time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	var h Histogram
	for i := range b.N {
		h.Observe(time.Duration(i) << 10)
	}
}
