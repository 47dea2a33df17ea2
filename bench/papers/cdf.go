package papers

import (
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// cdfPoints is how many points a curve has at most: more cannot be seen.
const cdfPoints = 200

// CDF is the distribution of samples, which it sorts.
func CDF(name string, samples []float64) Line {
	slices.Sort(samples)
	l := Line{Name: name}
	n := min(len(samples), cdfPoints)
	for i := range n {
		done := (i + 1) * len(samples) / n
		l.X = append(l.X, samples[done-1])
		l.Y = append(l.Y, float64(done)/float64(len(samples)))
	}
	return l
}

// HistogramCDF is the distribution of a histogram's values, each divided by unit:
// 1000 makes microseconds of nanoseconds.
func HistogramCDF(name string, h *hdrhistogram.Histogram, unit float64) Line {
	l := Line{Name: name}
	seen, total := int64(0), h.TotalCount()
	for _, b := range h.Distribution() {
		if b.Count == 0 {
			continue
		}
		before := seen * cdfPoints / total
		seen += b.Count
		// The first value is drawn, then those that raise the curve visibly.
		if len(l.X) == 0 || seen*cdfPoints/total > before {
			l.X = append(l.X, float64(b.To)/unit)
			l.Y = append(l.Y, float64(seen)/float64(total))
		}
	}
	return l
}
