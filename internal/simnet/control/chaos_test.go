package control

import (
	"fmt"
	"testing"
	"time"

	"weft/internal/slowtest"
)

// round is a second of chaos, and the peace after it.
func round(f *Fabric, chaos *Chaos, strikes int, peace time.Duration) error {
	for range strikes {
		f.Run(f.Now() + time.Duration(chaos.random.Int64N(int64(time.Second)/int64(strikes))))
		if err := chaos.Strike(); err != nil {
			return err
		}
	}
	if err := chaos.Calm(); err != nil {
		return err
	}
	f.Run(f.Now() + peace)
	return f.Check()
}

// After whatever has happened, everybody soon knows the truth. A fault an hour
// is much in a fabric of this size, so that faults count as hours.
func TestChaos_everybodyKnowsTheTruthInTheEnd(t *testing.T) {
	rounds := 12
	switch {
	case slowtest.Long():
		rounds = 600
	case testing.Short():
		rounds = 1
	}
	var total Stats
	for _, spec := range specs {
		for _, require := range []bool{true, false} {
			for seed := range uint64(3) {
				s := chaos(t, spec, seed, require, false, rounds)
				total.Events += s.Events
				total.Faults += s.Faults
				total.Messages += s.Messages
				total.Lost += s.Lost
				total.InFlight = max(total.InFlight, s.InFlight)
			}
		}
	}
	t.Logf("%d faults, %d events, %d messages of which %d were lost; at most %d events under way", total.Faults, total.Events, total.Messages, total.Lost, total.InFlight)
}

func chaos(t *testing.T, spec string, seed uint64, require, clocks bool, rounds int) Stats {
	t.Helper()
	c := quick(seed, spec, t)
	c.Agent.Require = require
	peace := settled(&c)
	if clocks {
		peace += 10 * c.Agent.MaxAge // until tombstones of earlier lives are forgotten
	}
	f, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	chaos := NewChaos(f, seed)
	chaos.ClocksGoBack, chaos.Loud = clocks, !require
	for r := range rounds {
		if err := round(f, chaos, 30, peace); err != nil {
			t.Fatalf("%s, seed %d, require %v, clocks go back %v, round %d, at %v: %v", spec, seed, require, clocks, r, f.Now(), err)
		}
		if n := f.Stats().InFlight; n > 5000 {
			t.Fatalf("%s, seed %d: %d events were under way", spec, seed, n)
		}
	}
	return f.Stats()
}

func TestChaos_clocksMayGoBack(t *testing.T) {
	rounds := 3
	switch {
	case slowtest.Long():
		rounds = 100
	case testing.Short():
		rounds = 1
	}
	for _, spec := range specs {
		for seed := range uint64(3) {
			chaos(t, spec, seed, true, true, rounds)
		}
	}
}

func TestFabric_sameSeedSameEvents(t *testing.T) {
	run := func() string {
		f, err := New(quick(7, "fat-tree:k=4", t))
		if err != nil {
			t.Fatal(err)
		}
		chaos := NewChaos(f, 7)
		for range 50 {
			f.Run(f.Now() + 20*time.Millisecond)
			if err := chaos.Strike(); err != nil {
				t.Fatal(err)
			}
		}
		s := fmt.Sprintf("%v %+v", f.Now(), f.Stats())
		for i := range f.nodes {
			if a := f.nodes[i].agent; a != nil {
				s += fmt.Sprintf("\n%+v %v", a.Stats(), a.Database())
			}
		}
		return s
	}
	if a, b := run(), run(); a != b {
		t.Errorf("the same seed gave\n%s\nand\n%s", a, b)
	}
}
