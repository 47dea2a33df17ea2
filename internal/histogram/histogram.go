// Package histogram counts durations in fixed buckets. Counting allocates nothing, takes a few
// nanoseconds, and needs no memory beyond the Histogram, so that it can stand beside the code
// that moves packets. All Histograms have the same buckets: they can be added.
package histogram

import (
	"math/bits"
	"time"
)

const (
	// First is the upper bound of the first bucket. Each further one is twice as wide: 8.192 us,
	// 16.384 us, ... 268 ms. Probes of a fabric come home after 10 us to some ms, a resequencer
	// holds packets for 100 us to 10 ms.
	First = 1 << firstBit * time.Nanosecond
	// Buckets is how many buckets have an upper bound.
	Buckets  = 16
	firstBit = 13
)

// Histogram counts durations. The zero value is empty. It is a value: a copy is a snapshot. It
// is not safe for concurrent use.
type Histogram struct {
	// Counts are those of the buckets, each without the ones below. The last is of durations
	// above all bounds.
	Counts [Buckets + 1]uint64
	Sum    time.Duration
}

// Bound returns the upper bound of a bucket, which belongs to it.
func Bound(bucket int) time.Duration { return First << bucket }

// Observe counts a duration. One below zero counts as zero.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	h.Counts[min(bits.Len64(uint64(max(d, 1)-1)>>firstBit), Buckets)]++
	h.Sum += d
}

// Add adds what another one has counted.
func (h *Histogram) Add(o *Histogram) {
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Sum += o.Sum
}

// Count returns how many durations were counted.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}
