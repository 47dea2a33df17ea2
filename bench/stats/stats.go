// Package stats summarises samples: fairness, percentiles, median. Its functions
// are pure and do not change their arguments. Without samples they return 0, or nil where
// they return a pointer.
package stats

import (
	"math"
	"slices"
)

// Jain is the fairness index of Jain, Chiu and Hawe (DEC TR-301, 1984): (Σx)² / (n Σx²).
// It is 1 if all are equal and 1/n if one has everything. If all samples are zero it is
// 0.
func Jain(x []float64) float64 {
	var sum, squares float64
	for _, v := range x {
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(x)) * squares)
}

// Percentile is the smallest sample that at least p percent of all samples do not exceed
// (nearest rank: no interpolation). p below 0 counts as 0, which gives the smallest
// sample, p above 100 as 100.
func Percentile(x []float64, p float64) float64 {
	if len(x) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(x))
	rank := int(math.Ceil(p/100*float64(len(x)) - 1e-9)) // 99.9 % of 1000 are 999, not a little more
	return sorted[min(max(rank, 1), len(x))-1]
}

// Median is the middle sample, or the mean of the two in the middle.
func Median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(x))
	mid := len(x) / 2
	if len(x)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// MedianOrNil is Median, nil without samples.
func MedianOrNil(x []float64) *float64 {
	if len(x) == 0 {
		return nil
	}
	m := Median(x)
	return &m
}

// Tail is a high percentile of each of several sets of samples.
type Tail struct {
	Percent float64
	all     []float64
	few     bool // a set has too few samples for it
}

// Add takes a set.
func (t *Tail) Add(x []float64) {
	t.few = t.few || !Enough(len(x), t.Percent)
	t.all = append(t.all, Percentile(x, t.Percent))
}

// Median is of all sets; nil if there is none, or one of them has too few samples.
func (t *Tail) Median() *float64 {
	if t.few {
		return nil
	}
	return MedianOrNil(t.all)
}

// Enough reports whether n samples are so many that one of them may be above their percentile p.
// The percentile of fewer is their maximum, which says nothing about others. A median needs 2,
// the percentiles 95, 99 and 99.9 need 20, 100 and 1000.
func Enough(n int, p float64) bool { return float64(n)*(100-p) >= 100-1e-6 }
