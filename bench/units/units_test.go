package units

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"weft/topology"
)

// auto is never worse than the better of its two ends by more than two percent of ideal, and
// where links are slow better than flowcells by much.
func TestRun_autoIsAsGoodAsTheBetter(t *testing.T) {
	leaveToOthers(t)
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
		if r.OfBest() < 98 || r.Ideal["auto"]-r.Ideal["flowcell-drb"] < c.gain {
			t.Errorf("%+v: auto (%s) at %.1f %% of ideal, flowcells %.1f, packets %.1f", c.Setting, r.Unit, r.Ideal["auto"], r.Ideal["flowcell-drb"], r.Ideal["drb"])
		}
	}
}

// A figure that a run has not got is 0, and not one that JSON cannot have.
func TestResult_ofBest(t *testing.T) {
	for _, c := range []struct{ auto, cells, packets, want float64 }{{45, 90, 50, 50}, {45, 30, 50, 90}, {45, 0, 0, 0}, {0, 0, 0, 0}} {
		r := Result{Ideal: map[string]float64{"auto": c.auto, "flowcell-drb": c.cells, "drb": c.packets}}
		if got := r.OfBest(); got != c.want {
			t.Errorf("auto %v, flowcells %v, packets %v: %v %%, want %v", c.auto, c.cells, c.packets, got, c.want)
		}
	}
}

func TestRun_isTheSameAgain(t *testing.T) {
	leaveToOthers(t)
	s := Setting{RateMbit: 100, Paths: 2, Connections: 4}
	a, err := Run(t.Context(), s, 7)
	b, err2 := Run(t.Context(), s, 7)
	if err != nil || err2 != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%+v, then %+v; %v, %v", a, b, err, err2)
	}
	if other, _ := Run(t.Context(), s, 8); reflect.DeepEqual(a.Ideal, other.Ideal) {
		t.Errorf("another seed changes nothing: %+v", other)
	}
}

// leaveToOthers skips a simulation where the race detector makes it ten times as long: Run
// has one goroutine at work at a time, and those that are handed over are simnet/world's.
func leaveToOthers(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes too long with the race detector, which simnet/world runs with: left out with -short")
	}
}

// A sweep on several processors has what its settings have one by one.
func TestSweep_isWhatItsSettingsAre(t *testing.T) {
	a := Axes{[]float64{10, 100}, []int{2}, []int{1, 4}}
	if testing.Short() { // as many as run beside each other
		a.Rates, a.Connections = []float64{10, 10}, []int{1}
	}
	settings := a.Settings()
	calls := 0
	got, err := Sweep(t.Context(), a, 3, func(int, int) { calls++ })
	if err != nil || calls != len(settings) {
		t.Fatalf("%d calls of progress, %v", calls, err)
	}
	if testing.Short() {
		settings = settings[:1]
	}
	for i, s := range settings {
		if want, err := Run(t.Context(), s, 3); err != nil || !reflect.DeepEqual(got[i], want) {
			t.Errorf("%+v, want %+v; %v", got[i], want, err)
		}
	}
}

func TestSweep_endsWithTheFirstError(t *testing.T) {
	a := Axes{[]float64{10, -1, 10}, []int{2}, []int{1}}
	if _, err := Sweep(t.Context(), a, 1, nil); err == nil {
		t.Error("a rate below 0 was simulated")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Sweep(ctx, Quick, 1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Runs are bounded whatever the rate, and none is shorter than ten round trips of full queues.
func TestSpan(t *testing.T) {
	for _, s := range Whole.Settings() {
		total := s.RateMbit * float64(s.Paths)
		d := s.span()
		if packets := d.Seconds() * total * 1e6 / 8 / (mss + headers); packets < leastPackets-1 || packets > mostPackets+1 {
			t.Errorf("%+v: %.0f packets", s, packets)
		}
		if trip := roundTrip + max(queueBytes*8/(s.RateMbit*1e6), roundTrip); d.Seconds() < 10*trip {
			t.Errorf("%+v: %v, and a round trip may take %v s", s, d, trip)
		}
	}
}

// There is a fabric for every setting of both sweeps, and the hosts' links are no bottleneck.
func TestSetting_fabric(t *testing.T) {
	for _, s := range append(Whole.Settings(), Quick.Settings()...) {
		f, err := topology.Parse(s.fabric())
		if err != nil {
			t.Errorf("%+v: %v", s, err)
			continue
		}
		if host := f.Rate(f.Ports(0)[0].Link); host < 1.5*s.RateMbit*float64(s.Paths) {
			t.Errorf("%+v: hosts have %g Mbit/s", s, host)
		}
	}
}
