package sim

import (
	"math/bits"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// counts are the counters of an HDR histogram of two significant digits, laid out
// as the library does, so that counting costs no call: values up to 255 have a
// counter each, and each octave above has 128.
type counts [(histogramBits - 6) * 128]int64

const (
	histogramBits   = 36
	histogramMax    = 1<<histogramBits - 1 // ns, 68 s
	histogramDigits = 2
)

// add counts a value, which is not negative; too large ones as the largest.
func (c *counts) add(v int64) {
	v = min(v, histogramMax)
	shift := max(bits.Len64(uint64(v))-8, 0)
	c[uint(shift<<7)+uint(v>>shift)]++
}

// histogram returns a copy as the library's.
func (c *counts) histogram() *hdrhistogram.Histogram {
	return hdrhistogram.Import(&hdrhistogram.Snapshot{
		LowestTrackableValue:  1,
		HighestTrackableValue: histogramMax,
		SignificantFigures:    histogramDigits,
		Counts:                c[:],
	})
}
