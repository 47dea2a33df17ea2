package event

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// bucket is the oracle: tokens that are counted one by one.
type bucket struct {
	tokens     float64
	at         time.Duration
	suppressed uint64
}

func (b *bucket) take(now time.Duration) bool {
	b.tokens = min(b.tokens+float64(now-b.at)/float64(Every), Burst)
	b.at = now
	if b.tokens < 1-1e-9 {
		b.suppressed++
		return false
	}
	b.tokens--
	return true
}

func TestLimiter_asATokenBucket(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 20))
		var l Limiter
		buckets := make(map[Name]*bucket)
		now, told, lost := time.Duration(0), uint64(0), uint64(0)
		for step := range 5000 {
			now += time.Duration(r.IntN(60)) * time.Millisecond
			name := Name(fmt.Sprint(r.IntN(2)))
			b := buckets[name]
			if b == nil {
				b = &bucket{tokens: Burst, at: now}
				buckets[name] = b
			}
			want := b.take(now)
			if want {
				b.suppressed = 0
			}
			got, suppressed := l.Allow(name, now)
			if held := slices.ContainsFunc(slices.Collect(maps.Values(buckets)), func(b *bucket) bool { return b.suppressed > 0 }); l.Suppresses() != held {
				t.Fatalf("seed %d, step %d: something is suppressed: %v, want %v", seed, step, l.Suppresses(), held)
			}
			if got != want {
				t.Fatalf("seed %d, step %d: told %v, want %v", seed, step, got, want)
			}
			if !got {
				lost++
			} else {
				told += suppressed
			}
		}
		for _, c := range l.Due(now + TellAfter) {
			told += c.N
		}
		if told != lost || lost == 0 {
			t.Errorf("seed %d: %d suppressed events are told of, want %d and some", seed, told, lost)
		}
		if again := l.Due(now + 2*TellAfter); len(again) > 0 {
			t.Errorf("seed %d: told twice: %v", seed, again)
		}
	}
}

// A storm of one name does not hide another, and the table does not grow.
func TestLimiter_bounded(t *testing.T) {
	var l Limiter
	for range 10_000 {
		l.Allow(PathDown, 0)
	}
	if ok, n := l.Allow(Trouble, 0); !ok || n != 0 {
		t.Errorf("another name is suppressed: %v, %d", ok, n)
	}
	for i := range 1000 {
		l.Allow(Name(fmt.Sprint(i)), 0)
	}
	if len(l.names) != MaxNames {
		t.Errorf("%d names are known, want %d", len(l.names), MaxNames)
	}
	if all := l.Due(TellAfter - 1); all != nil {
		t.Errorf("told early: %v", all)
	}
	all := l.Due(TellAfter)
	if i := slices.IndexFunc(all, func(c Count) bool { return c.Name == PathDown }); i < 0 || all[i].N != 10_000-Burst {
		t.Errorf("suppressed: %v", all)
	}
}

func TestNames_areDistinct(t *testing.T) {
	all := Names()
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != len(Names()) || n > MaxNames {
		t.Errorf("%d names of %d differ", n, len(Names()))
	}
}
