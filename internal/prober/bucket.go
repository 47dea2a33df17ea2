package prober

import "time"

// Peers' requests that are answered, so that nobody makes this host send without
// bound: as many a second as a thousand peers may send in a fat-tree of k=8.
const (
	echoRate  = 20000
	echoBurst = 2000
)

// bucket is a token bucket, full at first.
type bucket struct {
	spent float64
	at    time.Duration
}

func (b *bucket) take(now time.Duration) bool {
	b.spent = max(0, b.spent-(now-b.at).Seconds()*echoRate)
	b.at = now
	if b.spent+1 > echoBurst {
		return false
	}
	b.spent++
	return true
}
