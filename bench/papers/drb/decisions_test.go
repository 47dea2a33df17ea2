package drb

import (
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"weft/bench/papers"
	"weft/bench/sim"
)

// Every decision names its values, and each changes something.
func TestDecisions(t *testing.T) {
	subjects, err := papers.WithDecisions(Experiments())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects {
		v := s.Variant
		if v == nil || v.Tune == nil {
			continue
		}
		changed := false
		for _, subflows := range []int{0, 8} {
			c, err := testbed(papers.Options{Seed: 1}, "ecmp", false, testbedTimes)
			if err != nil {
				t.Fatal(err)
			}
			c.TCP.Subflows = subflows
			c.TCP.WindowBytes = 1 // as none has
			before := c
			v.Tune(&c)
			changed = changed || c.TCP != before.TCP || c.Delay != before.Delay || c.HostQueueBytes != before.HostQueueBytes || c.Known != before.Known || c.Workload != before.Workload
		}
		if !changed {
			t.Errorf("%s: %s changes nothing", s.Name, v)
		}
	}
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
