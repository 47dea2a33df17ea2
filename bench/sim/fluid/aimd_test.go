package fluid

import (
	"math"
	"testing"
)

// A flow alone: a packet per round trip, doubled, up to the link, halved, and then
// a packet more per round trip.
func TestAIMD_oneFlow(t *testing.T) {
	f := fabricOf(t, kinds[0])
	a := NewAIMD(f.Capacity(), []Route{f.Route(0, 9, 0)}, 1)
	for i, want := range []float64{120, 240, 480, 960, 1000, 500, 620, 740, 860, 980, 1000, 500} {
		if got := a.Rates()[0]; math.Abs(got-want) > 1e-6 {
			t.Fatalf("tick %d: %v, want %v", i, got, want)
		}
		a.Tick()
	}
}

// Flows through one port share it evenly in the mean, and never get more than it
// has.
func TestAIMD_sharesAPort(t *testing.T) {
	f := fabricOf(t, kinds[0])
	routes := []Route{f.Route(0, 9, 0), f.Route(4, 9, 1), f.Route(13, 9, 2)}
	a := NewAIMD(f.Capacity(), routes, 1)
	const ticks = 20000
	mean := make([]float64, len(routes))
	for range ticks {
		a.Tick()
		if sum := a.Rates()[0] + a.Rates()[1] + a.Rates()[2]; sum > 1000+1e-6 {
			t.Fatalf("%v Mbit/s through a port of 1000", sum)
		}
		for i, r := range a.Rates() {
			mean[i] += r / ticks
		}
	}
	for i, m := range mean {
		if m < 200 || m > 333 || math.Abs(m-mean[0]) > 10 {
			t.Errorf("flow %d gets %v in the mean; all: %v", i, m, mean)
		}
	}
}
