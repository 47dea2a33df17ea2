package liveness

import (
	"slices"
	"time"
)

// trips remembers the latest round trips of a path, for a status: 64 of them, so 256 bytes.
// The histogram beside it counts all, in buckets too wide for that. The zero value is ready.
type trips struct {
	micros [64]uint32
	n      uint32 // remembered so far, modulo 2³²
	full   bool
}

func (t *trips) add(rtt time.Duration) {
	t.micros[t.n%uint32(len(t.micros))] = uint32(min(max(rtt.Microseconds(), 0), 1<<32-1))
	t.n++
	t.full = t.full || t.n == uint32(len(t.micros))
}

// quantiles returns the median and the 99th percentile (nearest rank); 0 if there is none.
func (t *trips) quantiles() (median, p99 time.Duration) {
	if t.n == 0 && !t.full {
		return 0, 0
	}
	n := len(t.micros)
	if !t.full {
		n = int(t.n)
	}
	sorted := slices.Sorted(slices.Values(t.micros[:n]))
	at := func(percent int) time.Duration {
		return time.Duration(sorted[(n*percent+99)/100-1]) * time.Microsecond
	}
	return at(50), at(99)
}

// least returns the least of all that can be remembered; 0 until these are as many.
func (t *trips) least() time.Duration {
	if !t.full {
		return 0
	}
	return time.Duration(slices.Min(t.micros[:])) * time.Microsecond
}
