package papers

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func TestCDF_ofFew(t *testing.T) {
	l := CDF("x", []float64{3, 1, 2, 2})
	if !slices.Equal(l.X, []float64{1, 2, 2, 3}) || !slices.Equal(l.Y, []float64{0.25, 0.5, 0.75, 1}) {
		t.Errorf("%v", l)
	}
	if l := CDF("x", nil); len(l.X) != 0 {
		t.Errorf("of none: %v", l)
	}
}

// Every point of a curve is one of the distribution's.
func TestCDF_andHistogramCDFAreTheSamples(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{1, 2, 199, 200, 201, 5000} {
		h := hdrhistogram.New(1, 1e9, 3)
		samples := make([]float64, n)
		for i := range samples {
			v := int64(math.Exp(rng.Float64() * 18))
			samples[i] = float64(v)
			if err := h.RecordValue(v); err != nil {
				t.Fatal(err)
			}
		}
		plain, histogram := CDF("", samples), HistogramCDF("", h, 10)
		for i := range histogram.X {
			histogram.X[i] *= 10
		}
		for name, l := range map[string]Line{"samples": plain, "histogram": histogram} {
			if len(l.X) != len(l.Y) || len(l.X) > cdfPoints+1 || l.Y[len(l.Y)-1] != 1 {
				t.Fatalf("%s of %d: %d points, to %v", name, n, len(l.X), l.Y[len(l.Y)-1])
			}
			for i, x := range l.X {
				// A histogram's values are exact to three digits.
				low := sort.SearchFloat64s(samples, math.Nextafter(x*0.998, math.Inf(1)))
				high := sort.SearchFloat64s(samples, math.Nextafter(x*1.002, math.Inf(1)))
				if y := l.Y[i] * float64(n); y < float64(low)-1e-6 || y > float64(high)+1e-6 {
					t.Errorf("seed %d, %s of %d: %v of the samples are up to %v, want %d to %d", seed, name, n, y, x, low, high)
				}
			}
		}
	}
}
