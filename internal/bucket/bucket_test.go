package bucket

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// oracle fills a bucket with water, in nanoseconds of the rate and exactly.
type oracle struct {
	gap, burst, level, at time.Duration
}

func (o *oracle) take(n int, burst, now time.Duration) bool {
	o.level = min(o.level+now-o.at, o.burst)
	o.at = now
	if o.level-time.Duration(n)*o.gap < o.burst-burst {
		return false
	}
	o.level -= time.Duration(n) * o.gap
	return true
}

// Whatever is asked when, the bucket answers as one that is filled with water; it says
// when it would answer otherwise; and what is given back is as if never taken.
func TestBucket_likeAnOracle(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		gap := time.Duration(1 + rng.IntN(1000))
		b := Every(gap, time.Duration(rng.IntN(20*int(gap))))
		o := oracle{gap: b.Gap(), burst: b.Burst(), level: b.Burst()}
		now := time.Duration(rng.IntN(1000))
		for step := range 500 {
			if rng.IntN(20) == 0 {
				now += time.Duration(rng.IntN(50 * int(gap)))
			} else {
				now += time.Duration(rng.IntN(2 * int(gap)))
			}
			n, burst := 1+rng.IntN(4), b.Burst()
			if rng.IntN(4) == 0 {
				burst = time.Duration(rng.Int64N(int64(burst) + 1))
			}
			ready := b.Ready(n) <= now && time.Duration(n)*b.Gap() <= b.Burst()
			want := o.take(n, burst, now)
			if got := b.TakeWithin(n, burst, now); got != want {
				t.Fatalf("seed %d, step %d: %d within %v of %v at %v: %v, want %v", seed, step, n, burst, b.Burst(), now, got, want)
			}
			if burst == b.Burst() && ready != want {
				t.Fatalf("seed %d, step %d: ready %v, but %v", seed, step, ready, want)
			}
			if full := o.level == o.burst; full != (b.Paid() <= now) {
				t.Fatalf("seed %d, step %d: paid at %v, now %v, full %v", seed, step, b.Paid(), now, full)
			}
			if want && rng.IntN(5) == 0 {
				b.Give(n)
				o.level += time.Duration(n) * o.gap
			}
		}
	}
}

func TestNew_bounds(t *testing.T) {
	for _, c := range []struct {
		rate float64
		gap  time.Duration
	}{
		{0, 0}, {-1, 0}, {math.NaN(), 0}, {math.Inf(-1), 0},
		{1, time.Second}, {40_000, 25 * time.Microsecond}, {math.Inf(1), 1}, {1e10, 1}, {1e-300, maxGap},
	} {
		b := New(c.rate, 0)
		if b.Gap() != c.gap || b.None() != (c.gap == 0) || b.Burst() != c.gap {
			t.Errorf("%v a second: %+v", c.rate, b)
		}
		if !b.None() != b.Take(1, time.Hour) || b.Take(1<<20, 1<<61) {
			t.Errorf("%v a second: one of a full one, or too many", c.rate)
		}
	}
	b := New(100, time.Second) // a hundred at once, and not one more
	n := 0
	for b.Take(1, time.Hour) {
		n++
	}
	if n != 100 || b.Ready(1) != time.Hour+10*time.Millisecond {
		t.Errorf("%d at once, the next at %v", n, b.Ready(1))
	}
	if more, same := New(100, time.Second).AtLeast(101), New(100, time.Second).AtLeast(99); !more.Take(101, 0) || more.Take(1, 0) || same.Burst() != time.Second {
		t.Errorf("a burst of 101: %+v, of 99: %+v", more, same)
	}
	if none := New(0, 0).AtLeast(9); none.Take(1, time.Hour) {
		t.Error("something of nothing")
	}
}

func TestBucket_letsThroughWhatItSays(t *testing.T) {
	b := Every(10, 0).AtLeast(3)
	count := func(now time.Duration) (n int) {
		for b.Take(1, now) {
			n++
		}
		return n
	}
	for _, c := range []struct {
		now  time.Duration
		want int
	}{{0, 3}, {9, 0}, {10, 1}, {25, 1}, {29, 0}, {30, 1}, {1000, 3}, {1009, 0}, {1010, 1}} {
		if got := count(c.now); got != c.want {
			t.Errorf("at %d: %d, want %d", c.now, got, c.want)
		}
	}
	if due := b.Ready(1); due != 1020 || b.Take(1, due-1) || !b.Take(1, due) {
		t.Errorf("a token is said to be due at %d", due)
	}
}

func BenchmarkTake(b *testing.B) {
	k := New(1e6, time.Millisecond)
	now := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 900
		k.Take(1, now)
	}
}
