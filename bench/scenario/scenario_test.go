package scenario

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"weft/internal/golden"
	"weft/internal/slowtest"
	"weft/resequencer"
)

// bulk is how much the tests send: enough for slow start to be little of it.
func bulk() int64 {
	if slowtest.Long() {
		return Bulk
	}
	return 20 << 20
}

func goodput(t *testing.T, s Scenario) float64 {
	t.Helper()
	s.Bytes, s.Seed = bulk(), 1
	r, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	return r.Goodput
}

// A path that is slower by up to half a millisecond costs Presto nothing to
// speak of.
func TestRun_skewIsHidden(t *testing.T) {
	even := goodput(t, Scenario{Policy: "presto"})
	least := 0.9
	if slowtest.Long() { // slow start is less of it
		least = 0.95
	}
	for _, skew := range []time.Duration{20 * time.Microsecond, 100 * time.Microsecond, 500 * time.Microsecond} {
		got := goodput(t, Scenario{Policy: "presto", Skew: skew})
		t.Logf("skew %v: %.2f Gbit/s; no skew %.2f", skew, got/1e9, even/1e9)
		if got < least*even {
			t.Errorf("skew %v: %.2f Gbit/s of %.2f", skew, got/1e9, even/1e9)
		}
	}
}

// Without a resequencer it costs nearly everything.
func TestRun_resequencerIsNeeded(t *testing.T) {
	for _, skew := range []time.Duration{20 * time.Microsecond, 100 * time.Microsecond, 500 * time.Microsecond} {
		with := goodput(t, Scenario{Policy: "presto", Skew: skew})
		without := goodput(t, Scenario{Policy: "presto", Skew: skew, Discipline: resequencer.Off})
		t.Logf("skew %v: %.2f Gbit/s, without resequencer %.2f", skew, with/1e9, without/1e9)
		if with < 2*without {
			t.Errorf("skew %v: %.2f Gbit/s, without resequencer %.2f", skew, with/1e9, without/1e9)
		}
	}
}

// Losses cost no more than without spraying and resequencer: they are told at
// once.
func TestRun_lossIsToldAtOnce(t *testing.T) {
	for _, loss := range []float64{0.0001, 0.001} {
		bare := goodput(t, Scenario{Policy: "ecmp", Discipline: resequencer.Off, Loss: loss})
		presto := goodput(t, Scenario{Policy: "presto", Loss: loss})
		t.Logf("loss %g %%: %.2f Gbit/s, bare %.2f", 100*loss, presto/1e9, bare/1e9)
		if presto < 0.95*bare {
			t.Errorf("loss %g %%: %.2f Gbit/s, bare %.2f", 100*loss, presto/1e9, bare/1e9)
		}
	}
}

// Every scenario ends with all bytes as they were sent, and does the same when
// it is run again.
func TestAll_endAndRepeat(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			if s.Bytes = 5 << 20; slowtest.Small() {
				s.Bytes = 1 << 20
			}
			a, err := s.Run()
			if err != nil {
				t.Fatal(err)
			}
			b, err := s.Run()
			if err != nil || a.Trace != b.Trace || a.Trace == 0 {
				t.Errorf("trace %x, then %x, %v", a.Trace, b.Trace, err)
			}
			s.Seed++
			if c, err := s.Run(); err != nil || c.Trace == a.Trace {
				t.Errorf("another seed: trace %x, %v", c.Trace, err)
			}
		})
	}
}

// A change that moves a single packet of a scenario shows here, and its commit says why.
func TestAll_tracesAreKnown(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the known traces are of amd64: other processors round CUBIC's window in other ways")
	}
	var b strings.Builder
	for _, s := range scenarios() {
		switch {
		case s.Dies:
			s.Bytes = 20 << 20 // or all has arrived before
		case s.Loss > 0 && s.Loss < 0.001:
			s.Bytes = 28 << 20 // or nothing is lost
		default:
			s.Bytes = 1 << 20
		}
		r, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		faultless := Scenario{Name: s.Name, Policy: s.Policy, Discipline: s.Discipline, Bytes: s.Bytes, Seed: s.Seed}
		if s.Loss > 0 && r.Retransmits == 0 || s == faultless && r.Retransmits > 0 {
			t.Errorf("%s: %d packets are sent again", s.Name, r.Retransmits)
		}
		fmt.Fprintf(&b, "%s %016x\n", s.Name, r.Trace)
	}
	golden.Check(t, "traces.txt", b.String())
}

func TestSelect_namesAndErrors(t *testing.T) {
	if len(scenarios()) < 20 {
		t.Errorf("%d scenarios", len(scenarios()))
	}
	if l, err := Select([]string{"drb-mice", "presto-skew-2ms"}); err != nil || len(l) != 2 || l[0].Policy != "drb" || l[1].Skew != 2*time.Millisecond {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := Select([]string{"drb-mouse"}); err == nil || !strings.Contains(err.Error(), `"drb-mouse"`) || !strings.Contains(err.Error(), "presto-path-dies") {
		t.Error(err)
	}
}

// Losses are repaired at the pace of the round trip, of which netstack as it comes
// knows nothing below a millisecond: it has 0.09 Gbit/s here.
func TestRun_onePercentLoss(t *testing.T) {
	for _, policy := range []string{"presto", "drb"} {
		s := Scenario{Name: "loss", Policy: policy, Discipline: disciplineOf(policy), Bytes: 20 << 20, Seed: 1, Loss: 0.01}
		r, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.2f Gbit/s, %d timeouts", policy, r.Goodput/1e9, r.Timeouts)
		if r.Goodput < 0.4e9 {
			t.Errorf("%s, seed %d: %.2f Gbit/s, want 0.4 or more", policy, s.Seed, r.Goodput/1e9)
		}
	}
}
