package units

import (
	"reflect"
	"testing"
)

// auto is never worse than the better of its two ends by more than two percent of ideal, and
// where links are slow better than flowcells by much.
func TestRun_autoIsAsGoodAsTheBetter(t *testing.T) {
	for _, c := range []struct {
		Setting
		gain float64 // over flowcells, percent of ideal
	}{
		{Setting{RateMbit: 10, Paths: 4, Connections: 1}, 30},
		{Setting{RateMbit: 100, Paths: 2, Connections: 4}, -2},
		{Setting{RateMbit: 2500, Paths: 4, Connections: 4}, -2},
		{Setting{RateMbit: 10_000, Paths: 4, Connections: 4}, -2},
	} {
		r, err := Run(t.Context(), c.Setting, 1)
		if err != nil {
			t.Fatal(err)
		}
		if r.Below() > 2 || r.Ideal["auto"]-r.Ideal["flowcell-drb"] < c.gain {
			t.Errorf("%+v: auto (%s) at %.1f %% of ideal, flowcells %.1f, packets %.1f", c.Setting, r.Unit, r.Ideal["auto"], r.Ideal["flowcell-drb"], r.Ideal["drb"])
		}
	}
}

func TestRun_isTheSameAgain(t *testing.T) {
	s := Setting{RateMbit: 100, Paths: 4, Connections: 4}
	a, err := Run(t.Context(), s, 7)
	b, err2 := Run(t.Context(), s, 7)
	if err != nil || err2 != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%+v, then %+v; %v, %v", a, b, err, err2)
	}
	if other, _ := Run(t.Context(), s, 8); reflect.DeepEqual(a.Ideal, other.Ideal) {
		t.Errorf("another seed changes nothing: %+v", other)
	}
}
