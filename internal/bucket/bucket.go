// Package bucket is the token bucket with which weft keeps to a rate: of its own
// probes, and of what others may have it do.
//
// It is the virtual scheduling form of the generic cell rate algorithm (ITU-T I.371,
// annex A). The bucket knows only when all that was taken is paid for, and every call
// brings the time. So it needs no filling, keeps no fractions, and the answer to "when
// next?" is exact.
//
// The package is pure: it takes the time and owns no timer. A Bucket is not safe for
// concurrent use. It allocates nothing.
package bucket

import "time"

// Bucket lets tokens through at a rate, and some more at once after a pause. It is full
// at first. The zero value lets nothing through.
type Bucket struct {
	gap   time.Duration // between tokens; 0: there are none
	burst time.Duration // how far ahead of the rate it may run
	free  time.Duration // when all that was taken is paid for
}

// maxGap is the longest time between two tokens: slower rates count as that one. With
// 2^20 tokens at a time no sum of times overflows.
const maxGap = 1 << 40

// New returns a bucket of so many tokens a second that may run so far ahead of its
// rate: it lets rate*burst tokens through at once, and one at least. A rate of 0 or
// less, or NaN, lets nothing through. Above one a nanosecond it counts as that, and
// below one in 18 minutes as that.
func New(rate float64, burst time.Duration) Bucket {
	if !(rate > 0) {
		return Bucket{}
	}
	return Every(time.Duration(min(float64(time.Second)/rate, maxGap)), burst)
}

// Every returns a bucket of one token per gap, which is between a nanosecond and 18
// minutes, else the nearer of the two.
func Every(gap, burst time.Duration) Bucket {
	gap = min(max(gap, 1), maxGap)
	return Bucket{gap: gap, burst: max(burst, gap)}
}

// AtLeast returns the bucket with a burst that lets n tokens through at once, 2^20 at
// most, or more if it did before.
func (b Bucket) AtLeast(n int) Bucket {
	b.burst = max(b.burst, time.Duration(n)*b.gap)
	return b
}

// None reports whether the bucket never lets anything through.
func (b *Bucket) None() bool { return b.gap == 0 }

// Gap is the time from one token to the next; 0 if there are none.
func (b *Bucket) Gap() time.Duration { return b.gap }

// Burst is how far ahead of its rate the bucket may run.
func (b *Bucket) Burst() time.Duration { return b.burst }

// Take takes n tokens, 2^20 at most, if there are as many.
func (b *Bucket) Take(n int, now time.Duration) bool { return b.TakeWithin(n, b.burst, now) }

// TakeWithin takes n tokens if that runs no further ahead of the rate than burst,
// which may be less than the bucket's own: what is more important finds some left.
func (b *Bucket) TakeWithin(n int, burst, now time.Duration) bool {
	free := max(b.free, now) + time.Duration(n)*b.gap
	if b.gap == 0 || free > now+burst {
		return false
	}
	b.free = free
	return true
}

// Give gives back n of the tokens taken last.
func (b *Bucket) Give(n int) { b.free -= time.Duration(n) * b.gap }

// Ready is from when on Take gives n tokens: a time that may have passed.
func (b *Bucket) Ready(n int) time.Duration { return b.free + time.Duration(n)*b.gap - b.burst }

// Paid is when all that was taken is paid for: from then on the bucket is full.
func (b *Bucket) Paid() time.Duration { return b.free }
