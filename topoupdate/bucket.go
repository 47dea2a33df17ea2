package topoupdate

import "time"

// bucket lets through burst at once and one more per interval.
type bucket struct {
	interval time.Duration
	burst    int
	tokens   int
	filled   time.Duration // up to when tokens have been added
}

func newBucket(interval time.Duration, burst int) bucket {
	return bucket{interval: interval, burst: burst, tokens: burst}
}

func (b *bucket) fill(now time.Duration) {
	n := (now - b.filled) / b.interval
	if n <= 0 {
		return
	}
	b.filled += n * b.interval
	if n >= time.Duration(b.burst-b.tokens) {
		b.tokens = b.burst
		b.filled = now
		return
	}
	b.tokens += int(n)
}

// take reports whether there was a token left.
func (b *bucket) take(now time.Duration) bool {
	b.fill(now)
	if b.tokens == 0 {
		return false
	}
	b.tokens--
	return true
}

// due returns when there will be a token: the past if there is one.
func (b *bucket) due() time.Duration {
	if b.tokens > 0 {
		return 0
	}
	return b.filled + b.interval
}
