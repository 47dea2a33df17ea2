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
		{"a figure whose order holds", InOrder("", "", 1, 5, true), true},
		{"a figure whose order does not hold", InOrder("", "", 1, 1, false), false},
		{"sign", Sign("", true), true},
		{"claim", Claim("", false), false},
		{"info", Info("", "", 7), true},
	} {
		if c.row.OK != c.ok {
			t.Errorf("%s: OK is %v, want %v", c.name, c.row.OK, c.ok)
		}
	}
}

func TestJudge(t *testing.T) {
	good, bad := Within("", "", 1, 1, 1), Within("", "", 1, 2, 1)
	for _, c := range []struct {
		name string
		rows []Row
		want Verdict
	}{
		{"all", []Row{good, Sign("", true), Claim("", true)}, Agrees},
		{"without statements", []Row{good}, Agrees},
		{"the order alone", []Row{good, bad, Order("", 2, 1)}, AgreesOrder},
		{"one order of two", []Row{bad, Order("", 2, 1), Order("", 1, 2)}, Disagrees},
		{"figures but not the order", []Row{good, Order("", 1, 2)}, Disagrees},
		{"no order at all", []Row{good, bad}, Disagrees},
		{"a claim is no order", []Row{bad, Claim("", true)}, Disagrees},
		{"a claim that fails", []Row{good, Sign("", true), Claim("", false)}, AgreesOrder},
	} {
		if got := Judge(c.rows); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestExplained(t *testing.T) {
	good, bad := Within("a", "b", 1, 1, 1), Within("a", "b", 1, 2, 1)
	judge := Explained("why")
	if v, because := judge([]Row{good, bad}); v != Disagrees || because != "why" {
		t.Errorf("a row that is not OK: %s, %q", v, because)
	}
	if v, because := judge([]Row{good}); v != Agrees || because != "" {
		t.Errorf("rows that agree need no reason: %s, %q", v, because)
	}
}

func TestChange(t *testing.T) {
	if got := Change(80, 60); math.Abs(got+25) > 1e-9 {
		t.Errorf("from 80 to 60: %v %%, want -25", got)
	}
}
