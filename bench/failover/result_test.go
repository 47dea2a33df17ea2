package failover

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/bench/testbed"
)

func TestResult_summarises(t *testing.T) {
	r := Result{Kind: KindSilent, Agents: true}
	for i := range 30 {
		r.Samples = append(r.Samples, Repetition{LeftMs: float64(30 - i), Closed: i != 3, RestoredMs: float64(100 + i),
			OthersExpected: 4, OthersKept: 3, GoodputBefore: 100, GoodputDuring: 75, GoodputAfter: 99, Lost: i / 29, HolePackets: i})
	}
	r.Samples[7].RestoredMs = -1
	r.Samples[0].Paused = true // the latest
	r.summarise(testbed.CPU{}, testbed.CPU{}, true)
	if r.Paused != 1 || r.SteadyP99 != 29 || r.SteadyMax != 29 {
		t.Errorf("%d paused, the others %g, at most %g ms", r.Paused, r.SteadyP99, r.SteadyMax)
	}
	if r.Repetitions != 30 || r.P50 != 15.5 || r.P99 != 30 || r.Min != 1 || r.Max != 30 {
		t.Errorf("%+v", r)
	}
	if r.NotClosed != 1 || r.NotRestored != 1 || r.RestoredP99 != 129 || r.LostConnections != 1 || r.OthersExpected != 120 || r.OthersKept != 90 {
		t.Errorf("%+v", r)
	}
	if r.GoodputBefore != 100 || r.GoodputDuring != 75 || r.IdlePercent != -1 || r.CPUBound {
		t.Errorf("%+v", r)
	}
}

// Others read these names.
func TestResult_hasTheNamesThatAreAskedFor(t *testing.T) {
	b, err := json.Marshal(Result{})
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields("kind agents repetitions p50_ms p99_ms lost_connections goodput_before goodput_during goodput_after others_kept idle_percent seed") {
		if _, ok := m[name]; !ok {
			t.Errorf("no %s among %v", name, slices.Sorted(maps.Keys(m)))
		}
	}
}

func TestLevel_measures(t *testing.T) {
	var points []point
	add := func(from, to, mbit int) {
		for ms := from + 100; ms <= to; ms += 100 {
			points = append(points, point{time.Duration(ms) * time.Millisecond, float64(mbit)})
		}
	}
	add(0, 4000, 100)
	add(4000, 4500, 20) // TCP finds its rate
	add(4500, 8000, 75)
	first := Level{ToS: 4, IdealMbit: 110}
	first.measure(points, &first)
	second := Level{FromS: 4, ToS: 8, IdealMbit: 82.5}
	second.measure(points, &first)
	if first.Mbit != 100 || first.StableS != 0 || first.OfFirst != 1 {
		t.Errorf("%+v", first)
	}
	if second.Mbit != 75 || second.OfFirst != 0.75 || second.WantFirst != 0.75 || second.StableS != 0.5 {
		t.Errorf("%+v", second)
	}
	never := Level{FromS: 20, ToS: 30}
	if never.measure(points, &first); never.StableS != -1 {
		t.Errorf("%+v", never)
	}
}

func TestFigure12Steps_areOfTheRightSize(t *testing.T) {
	whole := parse(t, "fat-tree:k=6")
	steps, err := figure12Steps(whole)
	if err != nil {
		t.Fatal(err)
	}
	to, _ := permute(whole, 1)
	first := steps[0].ideal(whole, to, 10)
	for i, want := range []float64{9. / 9, 8. / 9, 7. / 9, 8. / 9, 9. / 9} {
		if got := steps[i].ideal(whole, to, 10) / first; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s: %.3f of the first, want %.3f", steps[i].event, got, want)
		}
	}
	if _, err := figure12Steps(parse(t, "fat-tree:k=2")); err == nil {
		t.Error("a fabric with one core can lose two")
	}
}

func TestOptions_check(t *testing.T) {
	good := Options{Topology: parse(t, "fat-tree:k=4"), Load: 0.5, Kinds: Kinds, Agents: []bool{true, false}, Liveness: true, Repetitions: 1,
		Hello: 20 * time.Millisecond, Outage: time.Second, Settle: time.Second}
	good.Complete()
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Options){
		"--repetitions": func(o *Options) { o.Repetitions = 0 },
		"--rate":        func(o *Options) { o.RateMbit = -1 },
		"--load":        func(o *Options) { o.Load = 1.5 },
		"--outage":      func(o *Options) { o.Outage = 0 },
		"--settle":      func(o *Options) { o.Settle = time.Hour },
		"--hello":       func(o *Options) { o.Hello = 0 },
		"--kinds":       func(o *Options) { o.Kinds = []string{"loud"} },
		"--liveness":    func(o *Options) { o.Liveness = false },
		"--topology":    func(o *Options) { o.Topology = nil },
	} {
		o := good
		spoil(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
