package papers

import (
	"math"
	"testing"
)

func TestRows_ok(t *testing.T) {
	for _, c := range []struct {
		name string
		row  Row
		ok   bool
	}{
		{"within, at the edge", Within("", "", 100, 110, 10), true},
		{"within, beyond", Within("", "", 100, 110.1, 10), false},
		{"within, below", Within("", "", 100, 89.9, 10), false},
		{"within of a negative", Within("", "", -30, -32, 10), true},
		{"within of a negative, beyond", Within("", "", -30, -34, 10), false},
		{"within of 0", Within("", "", 0, 0.001, 10), false},
		{"not a number", Within("", "", 1, math.NaN(), 10), false},
		{"ratio", Ratio("", "", 2, 6, 3, 0), true},
		{"at most", AtMost("", "", 0.4, 0.44, 10), true},
		{"at most, above", AtMost("", "", 0.4, 0.45, 10), false},
		{"at most of a negative", AtMost("", "", -20, -18, 10), true},
		{"at most of a negative, above", AtMost("", "", -20, -17, 10), false},
		{"at least", AtLeast("", "", 10, 9, 10), true},
		{"at least, below", AtLeast("", "", 10, 8.9, 10), false},
		{"at least of a negative, below", AtLeast("", "", -20, -23, 10), false},
		{"between", Between("", "", -35, -8, -20, 0), true},
		{"between, ends in any order", Between("", "", -8, -35, -20, 0), true},
		{"between, at an end", Between("", "", -35, -8, -35, 0), true},
		{"between, beyond", Between("", "", -35, -8, -36, 0), false},
		{"between, tolerated", Between("", "", -35, -8, -36, 10), true},
		{"between, above", Between("", "", -35, -8, 3, 10), false},
		{"order", Order("", 3, 2, 1), true},
		{"order of equals", Order("", 3, 3, 1), false},
		{"order, wrong", Order("", 3, 1, 2), false},
		{"order of what is no number", Order("", 3, math.NaN(), 2), false},
		{"order of what is tied", Order("", 101, 100.5), false},
		{"order beyond a tie", Order("", 102, 100.5), true},
		{"order of negatives that are tied", Order("", -100, -100.5), false},
		{"order as the paper's", OrderAs("", []string{"a", "b", "c"}, []float64{3, 1, 2}, []float64{9, 2, 5}), true},
		{"not as the paper's", OrderAs("", []string{"a", "b", "c"}, []float64{3, 1, 2}, []float64{9, 5, 2}), false},
		{"a tie of the paper's, the other way", OrderAs("", []string{"a", "b", "c"}, []float64{907, 901, 671}, []float64{914, 920, 716}), true},
		{"a tie of ours where the paper has none", OrderAs("", []string{"a", "b"}, []float64{3, 1}, []float64{100, 99.5}), false},
		{"the paper's all tied, ours too", OrderAs("", []string{"a", "b"}, []float64{100, 100}, []float64{90, 90}), true},
		{"the paper's all tied, ours not", OrderAs("", []string{"a", "b"}, []float64{100, 100}, []float64{90, 80}), false},
		{"sign", Sign("", true), true},
		{"claim", Claim("", false), false},
		{"info", Info("", "", 7), true},
	} {
		if c.row.OK != c.ok {
			t.Errorf("%s: OK is %v, want %v", c.name, c.row.OK, c.ok)
		}
	}
}

func TestChange(t *testing.T) {
	if got := Change(80, 60); math.Abs(got+25) > 1e-9 {
		t.Errorf("from 80 to 60: %v %%, want -25", got)
	}
}
