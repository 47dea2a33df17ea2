package throughput

import "testing"

func TestCellOf(t *testing.T) {
	result := func(name string, connections int, gbps float64) Result {
		return Result{Case: name, Connections: connections, Gbps: gbps}
	}
	results := []Result{
		result("host/auto", 1, 9), result("offload/drb", 1, 10), result("kernel", 1, 2.5),
		result("host/auto", 16, 12), result("offload/drb", 16, 10), result("gateway/presto", 64, 3),
	}
	for _, c := range []struct {
		connections int
		ofBest      float64
		best        string
	}{{1, 90, "offload/drb"}, {16, 120, "offload/drb"}, {64, 0, "gateway/presto"}} {
		got := cellOf(Regime{Connections: c.connections}, results)
		if !near(got.OfBest, c.ofBest) || got.Best != c.best {
			t.Errorf("%d connections: %+v, want %v %% of %s", c.connections, got, c.ofBest, c.best)
		}
	}
}

// Spines lose what they are told to, so TCP sends again, and there are as many as asked for.
func TestRun_spinesLose(t *testing.T) {
	o := short(t, "kernel")
	o.Rounds, o.Loss, o.Paths = 1, 0.02, 2
	var results []Result
	for range 10 { // a run in which the machine lets the sender send nothing says nothing
		var err error
		if results, err = Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if len(results) != 1 || results[0].Gbps > 0 {
			break
		}
		o.Duration *= 2
	}
	if len(results) != 1 || results[0].RetransmitsPerGB == 0 || len(results[0].PathShares) != 2 {
		t.Errorf("%+v", results)
	}
}
