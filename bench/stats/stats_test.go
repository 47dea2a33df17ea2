package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestJain(t *testing.T) {
	tests := []struct {
		x    []float64
		want float64
	}{
		{nil, 0},
		{[]float64{0, 0}, 0},
		{[]float64{7}, 1},
		{[]float64{3, 3, 3, 3}, 1},
		{[]float64{8, 0, 0, 0}, 0.25},
		{[]float64{1, 2, 3}, 36.0 / 42},
	}
	for _, tt := range tests {
		if got := Jain(tt.x); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("Jain(%v) = %v, want %v", tt.x, got, tt.want)
		}
	}
}

func TestPercentile(t *testing.T) {
	five := []float64{50, 15, 40, 20, 35}
	tests := []struct {
		x       []float64
		p, want float64
	}{
		{nil, 50, 0},
		{[]float64{4}, 0, 4},
		{[]float64{4}, 100, 4},
		{five, 5, 15},
		{five, 20, 15},
		{five, 20.1, 20},
		{five, 30, 20},
		{five, 40, 20},
		{five, 50, 35},
		{five, 99, 50},
		{five, 100, 50},
		{five, -3, 15},
		{five, 200, 50},
	}
	for _, tt := range tests {
		if got := Percentile(tt.x, tt.p); got != tt.want {
			t.Errorf("Percentile(%v, %v) = %v, want %v", tt.x, tt.p, got, tt.want)
		}
	}
}

// TestPercentile_matchesItsDefinition counts samples for random inputs.
func TestPercentile_matchesItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		x := make([]float64, 1+rng.IntN(30))
		for i := range x {
			x[i] = float64(rng.IntN(10))
		}
		p := float64(rng.IntN(101))
		got := Percentile(x, p)
		notAbove, below := 0, 0
		for _, v := range x {
			if v <= got {
				notAbove++
			}
			if v < got {
				below++
			}
		}
		n := float64(len(x))
		if !slices.Contains(x, got) || float64(notAbove) < p/100*n-1e-9 || below > 0 && float64(below) >= p/100*n+1e-9 {
			t.Fatalf("Percentile(%v, %v) = %v: %d not above, %d below", x, p, got, notAbove, below)
		}
	}
}

// A rank that is a whole number is that one: 99.9/100*1000 is above 999 in floating point.
func TestPercentile_wholeRanks(t *testing.T) {
	var x []float64
	for i := range 1000 {
		x = append(x, float64(i+1))
	}
	for p, want := range map[float64]float64{99.9: 999, 99.8: 998, 99.5: 995, 99: 990, 95: 950, 0.1: 1, 99.91: 1000} {
		if got := Percentile(x, p); got != want {
			t.Errorf("%g %%: %g, want %g", p, got, want)
		}
	}
}

func TestMedian(t *testing.T) {
	tests := []struct {
		x    []float64
		want float64
	}{
		{nil, 0},
		{[]float64{3}, 3},
		{[]float64{9, 1}, 5},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
	}
	for _, tt := range tests {
		if got := Median(tt.x); got != tt.want {
			t.Errorf("Median(%v) = %v, want %v", tt.x, got, tt.want)
		}
	}
}

func TestAll_leaveTheirArgumentAlone(t *testing.T) {
	x := []float64{3, 1, 2}
	Jain(x)
	Percentile(x, 50)
	Median(x)
	if !slices.Equal(x, []float64{3, 1, 2}) {
		t.Errorf("argument is now %v", x)
	}
}

func TestMedianOrNil(t *testing.T) {
	if m := MedianOrNil(nil); m != nil {
		t.Errorf("%v of nothing", *m)
	}
	if m := MedianOrNil([]float64{3, 1, 2}); m == nil || *m != 2 {
		t.Errorf("%v", m)
	}
}

// One sample less is not enough, and then the percentile is the maximum.
func TestEnough(t *testing.T) {
	for p, least := range map[float64]int{50: 2, 95: 20, 99: 100, 99.9: 1000} {
		for n, want := range map[int]bool{0: false, least - 1: false, least: true, least + 1: true} {
			var x []float64
			for i := range n {
				x = append(x, float64(i))
			}
			if got := Enough(n, p); got != want || n > 0 && (Percentile(x, p) < float64(n-1)) != want {
				t.Errorf("percentile %g of %d samples: %v", p, n, got)
			}
		}
	}
}
