package drb

import (
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"weft/bench/papers"
	"weft/bench/sim"
)

// Every value of every decision is another one than the experiment's own: it changes the
// configuration of a run, or what is made of one.
func TestDecisions(t *testing.T) {
	for _, e := range Experiments() {
		for _, d := range e.Decisions {
			for _, v := range d.Values {
				if !tunes(t, e.Name, v) && !replaces(v) {
					t.Errorf("%s, %s: %s changes nothing", e.Name, d.Parameter, v.Name)
				}
			}
		}
	}
	if own := (papers.DecisionValue{Tune: func(c *sim.Config) { c.TCP.WindowBytes = effective }}); tunes(t, "drb-f9", own) {
		t.Error("a window as the experiment has it changes something")
	}
	if replaces(papers.DecisionValue{Replace: map[string]string{"nobody asks for this": "x"}}) {
		t.Error("a name that nobody asks for changes something")
	}
}

// tunes reports whether a value changes the configuration of an experiment.
func tunes(t *testing.T, experiment string, v papers.DecisionValue) bool {
	t.Helper()
	if v.Tune == nil {
		return false
	}
	o, fabric := papers.Options{Seed: 1}, parse(t, fatTree8)
	c := network(o, fabric, "drb", steady)
	var err error
	switch experiment {
	case "drb-f8":
		c, err = multipath(o, fabric, 8, steady)
	case "drb-f10", "drb-f11", "drb-f12":
		c, err = testbed(o, "ecmp", false, testbedTimes)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := c
	v.Tune(&c)
	return c.TCP != before.TCP || c.Delay != before.Delay || c.HostQueueBytes != before.HostQueueBytes || c.Known != before.Known || c.Workload != before.Workload
}

// replaces reports whether somebody asks for a name that a value replaces.
func replaces(v papers.DecisionValue) bool {
	m := measured{Result: &sim.Result{AckPackets: 2}}
	m.Resequencing = histogram(100, 300)
	of := func(o papers.Options) (x [5]float64) {
		x[0], x[1] = resequenced(o, m), float64(atFullLoad(o, 100))
		x[2], x[3] = alsoArriving(o, .5)
		x[4] = float64(len(o.As(byOvertaking)))
		return x
	}
	return of(papers.Options{Variant: &papers.Variant{Name: v.Name, Replace: v.Replace}}) != of(papers.Options{})
}

// Where both layers of switches hash alike, flows see three of nine cores, one of each
// second-layer switch.
func TestPolarised(t *testing.T) {
	live := polarised(parse(t, testbedFabric)).Paths(0, 53).Live
	if len(live) != 3 || live[0] != 0 || live[1] != 4 || live[2] != 8 {
		t.Errorf("paths %v are live, want 0, 4 and 8", live)
	}
}

// A connection's subflows share the window that the paper states, and DRB has none.
func TestMultipath(t *testing.T) {
	fabric := parse(t, fatTree8)
	for _, subflows := range []int{0, 1, 32} {
		c, err := multipath(papers.Options{Seed: 1}, fabric, subflows, steady)
		if err != nil {
			t.Fatal(err)
		}
		policy, window := "ecmp", stated
		if subflows == 0 {
			policy, window = "drb", effective
		}
		if c.Policy != policy || c.TCP.Subflows != subflows || c.TCP.WindowBytes != window || c.SpreadSubflows != (subflows > 0) {
			t.Errorf("%d subflows: policy %s, %+v, spread %v", subflows, c.Policy, c.TCP, c.SpreadSubflows)
		}
		oneSubflow.Tune(&c)
		if c.TCP.Subflows != min(subflows, 1) {
			t.Errorf("%d subflows: the mutant has %d", subflows, c.TCP.Subflows)
		}
	}
	var c sim.Config
	ofMPTCP(func(*sim.Config) { t.Error("a run without subflows is changed") })(&c)
}

// With acknowledgements, as many as data packets, a mean delay is half.
func TestResequenced(t *testing.T) {
	m := measured{Result: &sim.Result{AckPackets: 2}}
	m.Resequencing = histogram(100, 300)
	o := papers.Options{}
	alone := resequenced(o, m)
	v := averaged.Values[0]
	o.Variant = &papers.Variant{Name: v.Name, Replace: v.Replace}
	if both := resequenced(o, m); alone <= 0 || both != alone/2 {
		t.Errorf("of data %v, with acknowledgements %v", alone, both)
	}
}

// histogram has such delays, in ns.
func histogram(delays ...int64) *hdrhistogram.Histogram {
	h := hdrhistogram.New(1, 1e9, 2)
	for _, d := range delays {
		_ = h.RecordValue(d)
	}
	return h
}
