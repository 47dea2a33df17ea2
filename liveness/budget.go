package liveness

import (
	"time"

	"weft/internal/bucket"
)

// budget keeps probes within the configured rate. Three fifths of it are for the
// steady probing of all paths, the rest for suspicious ones, which may also have
// what steady probing leaves; so neither starves the other.
type budget struct {
	calm, hasty bucket.Bucket
}

func (b *budget) init(rate float64) {
	b.calm = probes(rate * 3 / 5)
	b.hasty = probes(rate * 2 / 5)
}

func (b *budget) none() bool { return b.calm.None() }

// rate returns the steady part of the budget, in probes per second.
func (b *budget) rate() float64 { return float64(time.Second) / float64(b.calm.Gap()) }

// steady pays for one probe and reports whether it may be sent.
func (b *budget) steady(now time.Duration) bool { return b.calm.Take(1, now) }

// urgent pays for n probes.
func (b *budget) urgent(n int, now time.Duration) bool {
	return b.hasty.Take(n, now) || b.calm.TakeWithin(n, b.calm.Burst()/2, now)
}

// wait returns how long it takes until it is worth asking again.
func (b *budget) wait(now time.Duration) time.Duration {
	return max(min(b.calm.Paid(), b.hasty.Paid())-now, b.calm.Gap())
}

// probes is a bucket of so many probes a second, of which a few may go at once.
func probes(rate float64) bucket.Bucket {
	return bucket.New(rate, 20*time.Millisecond).AtLeast(8)
}
