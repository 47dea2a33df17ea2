package liveness

import "time"

// bucket keeps probes within the budget. What is not urgent leaves a quarter of
// the burst to what is.
type bucket struct {
	gap   time.Duration // between probes; 0: there are none
	burst time.Duration
	free  time.Duration // when the bucket would be full again, if nothing were sent
}

func (b *bucket) init(rate float64) {
	*b = bucket{}
	if rate <= 0 {
		return
	}
	b.gap = max(time.Duration(float64(time.Second)/rate), 1)
	b.burst = max(20*time.Millisecond, 8*b.gap)
}

// take pays for n probes at once and reports whether they are within budget.
func (b *bucket) take(n int, urgent bool, now time.Duration) bool {
	if b.gap == 0 {
		return false
	}
	limit := b.burst
	if !urgent {
		limit -= limit / 4
	}
	b.free = max(b.free, now)
	cost := time.Duration(n) * b.gap
	if b.free+cost > now+limit {
		return false
	}
	b.free += cost
	return true
}

// wait returns when it is worth asking again.
func (b *bucket) wait(now time.Duration) time.Duration {
	return max(b.free-now-b.burst/2, b.gap)
}
