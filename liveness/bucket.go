package liveness

import "time"

// budget keeps probes within the configured rate. Three fifths of it are for the
// steady probing of all paths, the rest for suspicious ones, which may also have
// what steady probing leaves; so neither starves the other.
type budget struct {
	calm, hasty bucket
}

func (b *budget) init(rate float64) {
	b.calm.init(rate * 3 / 5)
	b.hasty.init(rate * 2 / 5)
}

func (b *budget) none() bool { return b.calm.gap == 0 }

// rate returns the steady part of the budget, in probes per second.
func (b *budget) rate() float64 { return float64(time.Second) / float64(b.calm.gap) }

// steady pays for one probe and reports whether it may be sent.
func (b *budget) steady(now time.Duration) bool { return b.calm.take(1, b.calm.burst, now) }

// urgent pays for n probes.
func (b *budget) urgent(n int, now time.Duration) bool {
	return b.hasty.take(n, b.hasty.burst, now) || b.calm.take(n, b.calm.burst/2, now)
}

// wait returns how long it takes until it is worth asking again.
func (b *budget) wait(now time.Duration) time.Duration {
	return max(min(b.calm.free, b.hasty.free)-now, b.calm.gap)
}

// bucket is a token bucket.
type bucket struct {
	gap   time.Duration // between probes; 0: there are none
	burst time.Duration // how far ahead of its rate it may run
	free  time.Duration // when all that was sent is paid for
}

func (b *bucket) init(rate float64) {
	*b = bucket{}
	if rate <= 0 {
		return
	}
	b.gap = max(time.Duration(float64(time.Second)/rate), 1)
	b.burst = max(20*time.Millisecond, 8*b.gap)
}

// take pays for n probes if that runs no further ahead than limit.
func (b *bucket) take(n int, limit, now time.Duration) bool {
	free := max(b.free, now) + time.Duration(n)*b.gap
	if b.gap == 0 || free > now+limit {
		return false
	}
	b.free = free
	return true
}
