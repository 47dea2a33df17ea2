package luopan

import "time"

// budget is a token bucket.
type budget struct {
	gap   time.Duration // between probes
	burst time.Duration // how far ahead of its rate it may run
	free  time.Duration // when all that was sent is paid for
}

// newBudget allows for a burst of 20 ms, and for a round at least.
func newBudget(rate float64, samples int) budget {
	gap := max(time.Duration(float64(time.Second)/rate), 1)
	return budget{gap: gap, burst: max(20*time.Millisecond, time.Duration(samples)*gap)}
}

// take pays for n probes if they are within the rate. If not, it returns when they
// will be.
func (b *budget) take(n int, now time.Duration) (ok bool, ready time.Duration) {
	free := max(b.free, now) + time.Duration(n)*b.gap
	if free > now+b.burst {
		return false, free - b.burst
	}
	b.free = free
	return true, now
}

// give returns what was paid for n probes that are not sent after all.
func (b *budget) give(n int) { b.free -= time.Duration(n) * b.gap }
