package slotted

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"weft/drb"
)

func run(t *testing.T, c Config) *Result {
	t.Helper()
	r, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func within(t *testing.T, what string, got, want, percent float64) {
	t.Helper()
	if math.Abs(got-want) > want*percent/100 {
		t.Errorf("%s is %.3f, want %.3f within %v %%", what, got, want, percent)
	}
}

// With two hosts a rack, both at the first of four paths, and a packet in every
// slot, the first port gets under round robin 2, 2, 0, 0 packets, over and over,
// under digit reversal 2, 0, 2, 0.
func TestRun_byHand(t *testing.T) {
	for _, c := range []struct {
		rule drb.Rule
		want Lengths // of 8 slots, both ports of 8 racks
	}{
		// 2 3 2 1 2 3 2 1 and 0 0 2 3 2 1 2 3.
		{drb.RoundRobin, Lengths{2 * 8, 3 * 8, 7 * 8, 4 * 8}},
		// 2 1 2 1 2 1 2 1 and 0 2 1 2 1 2 1 2.
		{drb.DigitReversal, Lengths{1 * 8, 7 * 8, 8 * 8}},
	} {
		r := run(t, Config{Ports: 4, Load: 1, Rule: c.rule, EqualStarts: true, Hops: 1, Slots: 8})
		if got := r.Lengths[0]; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: lengths %v, want %v", c.rule, got, c.want)
		}
	}
}

// TestRun_oracle compares every hop with a model that keeps whole paths.
func TestRun_oracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 25 {
		c := Config{
			Ports: 4 + 2*rng.IntN(3), Load: 0.5 + rng.Float64()/2, Rule: drb.Rule(rng.IntN(3)),
			EqualStarts: rng.IntN(2) == 0, Hops: 1 + rng.IntN(hops), Slots: 200, Warmup: rng.IntN(50), Seed: rng.Uint64(),
		}
		if got, want := run(t, c), oracle(c); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v: got %v, want %v", c, got, want)
		}
	}
}

// Appendix B at 24 ports and load 0.95. RB is held to its closed form, since the
// paper's 7.9 is what a run of 1,200 slots from empty queues gives.
func TestRun_paper(t *testing.T) {
	for _, c := range []struct {
		rule           drb.Rule
		mean, variance float64
	}{
		{drb.DigitReversal, 2.2, 1.45},
		{drb.RoundRobin, 16.0, 151},
	} {
		l := run(t, Config{Ports: 24, Load: 0.95, Rule: c.rule, Hops: 1, Slots: 1500, Warmup: 500, Seed: 1}).Lengths[0]
		within(t, c.rule.String()+": mean", l.Mean(), c.mean, 12)
		within(t, c.rule.String()+": variance", l.Variance(), c.variance, 12)
	}
	l := run(t, Config{Ports: 24, Load: 0.95, Rule: drb.Random, Hops: 1, Slots: 1200, Seed: 1}).Lengths[0]
	within(t, "mean of 1,200 slots", l.Mean(), 7.9, 3)
	within(t, "variance of 1,200 slots", l.Variance(), 58, 5)
}

func TestRun_closedFormOfRandom(t *testing.T) {
	for _, c := range []struct {
		ports int
		load  float64
	}{{4, 0.5}, {8, 0.8}, {10, 0.9}} {
		l := run(t, Config{Ports: c.ports, Load: c.load, Rule: drb.Random, Hops: 1, Slots: 15000, Warmup: 1000, Seed: 1}).Lengths[0]
		within(t, "mean", l.Mean(), FirstHopOfRandom(c.ports, c.load), 3)
	}
}

// Whatever the starts and arrivals: a port at the first hop gets from each of its
// n/2 hosts at most every n/2-th packet under digit reversal, at most n/2 in a row
// under round robin.
func TestRun_bounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 60 {
		c := Config{
			Ports: 4 + 2*rng.IntN(5), Load: 1 - rng.Float64()*rng.Float64(), EqualStarts: rng.IntN(2) == 0,
			Hops: 1, Slots: 500, Seed: rng.Uint64(),
		}
		half := c.Ports / 2
		for rule, bound := range map[drb.Rule]int{drb.DigitReversal: half - 1, drb.RoundRobin: half * (half - 1)} {
			c.Rule = rule
			if got := run(t, c).Lengths[0].AfterService().Max(); got > bound {
				t.Fatalf("%+v: %d packets wait, want at most %d", c, got, bound)
			}
		}
	}
}

// The worst case is attained: by round robin at the first hop, and with equal
// starts by digit reversal at the second, which is why starts are random.
func TestRun_worstCase(t *testing.T) {
	c := Config{Ports: 24, Load: 1, Rule: drb.RoundRobin, EqualStarts: true, Hops: 2, Slots: 300}
	if got := run(t, c).Lengths[0].AfterService().Max(); got != 132 {
		t.Errorf("round robin: %d packets wait at most, want 12·11", got)
	}
	c.Rule = drb.DigitReversal
	r := run(t, c)
	if first, second := r.Lengths[0].AfterService().Max(), r.Lengths[1].AfterService().Max(); first != 11 || second != 132 {
		t.Errorf("digit reversal: %d and %d packets wait at most, want 11 and 132", first, second)
	}
	c.EqualStarts = false
	if got := run(t, c).Lengths[1].AfterService().Max(); got > 40 {
		t.Errorf("digit reversal from random starts: %d packets wait at the second hop", got)
	}
}

// At load 1 the queue of random choices grows as the square root of the time.
func TestRun_randomIsUnbounded(t *testing.T) {
	c := Config{Ports: 8, Load: 1, Rule: drb.Random, Hops: 1, Slots: 100, Seed: 1}
	var means []float64
	for _, c.Warmup = range []int{1000, 4000, 16000} {
		means = append(means, run(t, c).Lengths[0].Mean())
	}
	if means[1] < 1.6*means[0] || means[2] < 1.6*means[1] {
		t.Errorf("means %.1f after 1,000, 4,000 and 16,000 slots, want each twice the one before", means)
	}
}

// Down from the core, every packet reaches the port of its host: all that came in
// goes out at hop 5, and no host gets more than the one that sends to it begins.
func TestRun_conserves(t *testing.T) {
	c := Config{Ports: 8, Load: 0.7, Rule: drb.DigitReversal, Hops: hops, Slots: 3000, Seed: 3}
	hosts := 128.0
	within(t, "packet-hops", float64(run(t, c).PacketHops), hosts*c.Load*float64(c.Slots)*hops, 1)
}

func TestRun_seed(t *testing.T) {
	c := Config{Ports: 8, Load: 0.9, Rule: drb.Random, Hops: hops, Slots: 300, Seed: 3}
	a, b := run(t, c), run(t, c)
	if !reflect.DeepEqual(a, b) {
		t.Error("same seed, another result")
	}
	c.Seed++
	if reflect.DeepEqual(a, run(t, c)) {
		t.Error("another seed, same result")
	}
}

func TestRun_refuses(t *testing.T) {
	good := Config{Ports: 8, Load: 0.9, Hops: hops, Slots: 1}
	for field, spoil := range map[string]func(*Config){
		"Ports": func(c *Config) { c.Ports = 7 },
		"Load":  func(c *Config) { c.Load = math.NaN() },
		"Rule":  func(c *Config) { c.Rule = drb.Hash },
		"Hops":  func(c *Config) { c.Hops = 6 },
		"Slots": func(c *Config) { c.Slots = 0 },
	} {
		c := good
		spoil(&c)
		if _, err := Run(c); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

func TestLengths(t *testing.T) {
	l := Lengths{1, 2, 0, 1} // 0 1 1 3
	if l.Max() != 3 || l.Mean() != 1.25 || l.Variance() != 1.1875 {
		t.Errorf("max %d, mean %v, variance %v", l.Max(), l.Mean(), l.Variance())
	}
	if got, want := l.AfterService(), (Lengths{3, 0, 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("after service %v, want %v", got, want)
	}
}
