package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestInterval95(t *testing.T) {
	if mean, half := Interval95(nil); mean != 0 || half != nil {
		t.Errorf("of nothing: %v, %v", mean, half)
	}
	if mean, half := Interval95([]float64{7}); mean != 7 || half != nil {
		t.Errorf("of one: %v, %v", mean, half)
	}
	// 2.776 times 1.5811 / sqrt 5.
	if mean, half := Interval95([]float64{1, 2, 3, 4, 5}); mean != 3 || math.Abs(*half-1.963) > .001 {
		t.Errorf("of 1 to 5: %v, %v", mean, *half)
	}
}

// Of intervals of many draws 95 % have the mean of what they are drawn from.
func TestInterval95_covers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{2, 5, 10, 40} {
		const draws = 20_000
		covered := 0
		for range draws {
			x := make([]float64, n)
			for i := range x {
				x[i] = 100 + 8*rng.NormFloat64()
			}
			if mean, half := Interval95(x); math.Abs(mean-100) <= *half {
				covered++
			}
		}
		if share := float64(covered) / draws; math.Abs(share-.95) > .006 { // four deviations
			t.Errorf("%d samples: %.2f %% of intervals have the mean, want 95", n, 100*share)
		}
	}
}

// The expansion goes on where the table ends.
func TestQuantile975_isContinuous(t *testing.T) {
	for df := 2; df < 200; df++ {
		if a, b := quantile975(df-1), quantile975(df); b >= a || b < 1.96 {
			t.Errorf("%d degrees: %v, with one less %v", df, b, a)
		}
	}
	if got := quantile975(40); math.Abs(got-2.021) > .001 {
		t.Errorf("40 degrees: %v, want 2.021", got)
	}
}
