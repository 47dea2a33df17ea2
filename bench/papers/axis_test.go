package papers

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestAxis_places(t *testing.T) {
	linear := newAxis(0, 100, []float64{3, 18}, false) // 0 to 20
	for v, want := range map[float64]float64{0: 0, 5: 25, 20: 100, 30: 100, -1: 0, math.NaN(): 0} {
		if got := linear.at(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("linear: %v is at %v, want %v", v, got, want)
		}
	}
	log := newAxis(100, 0, []float64{2, 900}, true) // 1 to 1000, downwards
	for v, want := range map[float64]float64{1: 100, 10: 100 - 100./3, 1000: 0, 0: 100} {
		if got := log.at(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("log: %v is at %v, want %v", v, got, want)
		}
	}
	if above := newAxis(0, 100, []float64{-4}, false); above.ticks[len(above.ticks)-1].Label != "0" {
		t.Errorf("ticks %v", above.ticks)
	}
	below := newAxis(0, 100, []float64{-35, 12}, false) // -40 to 20
	for v, want := range map[float64]float64{-40: 0, 0: 200. / 3, 20: 100} {
		if got := below.at(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("below 0: %v is at %v, want %v", v, got, want)
		}
	}
}

// Whatever the values, the axis has few ticks, spans them, and keeps their order.
func TestAxis_spansAnything(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var values []float64
		for range rng.IntN(5) {
			values = append(values, rng.NormFloat64()*math.Pow(10, float64(rng.IntN(24)-12)))
		}
		log := seed%2 == 0
		a := newAxis(10, 90, values, log)
		if n := len(a.ticks); n < 2 || n > 12 {
			t.Errorf("seed %d, %v: %d ticks", seed, values, n)
		}
		for i, tick := range a.ticks {
			if tick.At < 10-1e-6 || tick.At > 90+1e-6 || i > 0 && tick.At <= a.ticks[i-1].At {
				t.Errorf("seed %d, %v: ticks %v", seed, values, a.ticks)
			}
		}
		for _, v := range values {
			for _, u := range values {
				if v < u && a.at(v) > a.at(u) {
					t.Errorf("seed %d: %v is after %v", seed, v, u)
				}
			}
			slack := 1e-8 * (a.high - a.low)
			if !log && (v < a.low-slack || v > a.high+slack) {
				t.Errorf("seed %d: %v is off the axis from %v to %v", seed, v, a.low, a.high)
			}
		}
	}
}

func TestDraw_linesAndBars(t *testing.T) {
	l := Chart{Lines: []Line{{Name: "a", X: []float64{0, 5, 10}, Y: []float64{0, math.NaN(), 1}}}}.draw()
	if want := "M52.0 250.0L505.0 12.0"; l.Lines[0].Path != want {
		t.Errorf("path %q, want %q", l.Lines[0].Path, want)
	}
	if len(l.Lines[0].Points) != 2 {
		t.Errorf("%d points, want the 2 that are numbers", len(l.Lines[0].Points))
	}
	paper := 10.0
	b := Chart{Bars: []Bar{{Name: "a", Ours: 5, Paper: &paper}, {Name: "b", Ours: -5}}}.draw()
	// -5 to 10: a third of the width is below 0.
	if a := b.Bars[0]; math.Abs(a.Left-233.33) > 0.01 || math.Abs(a.Width-103.33) > 0.01 || a.Paper != barsRight || !strings.Contains(a.Value, "(10)") {
		t.Errorf("%+v", a)
	}
	if n := b.Bars[1]; n.Left != barsLeft || math.Abs(n.Width-103.33) > 0.01 || n.Paper != 0 {
		t.Errorf("%+v", n)
	}
}
