package scenario

import (
	"fmt"
	"testing"
	"time"

	"weft/internal/simnet"
	"weft/internal/simnet/world"
	"weft/internal/slowtest"
	"weft/resequencer"
)

// A path that dies costs the share of what was sent into it; the resequencer
// adds about one hold to its repair, however many packets are lost, and goodput
// comes back soon after the hosts know.
func TestEpisode_resequencerAddsOneHold(t *testing.T) {
	slowtest.System(t)
	type setting struct {
		policy string
		paths  int
		learn  time.Duration
	}
	episodes := []setting{{"drb", 9, 60 * time.Millisecond}, {"presto", 4, 10 * time.Millisecond}}
	if slowtest.Long() {
		episodes = append(episodes, setting{"drb", 4, 10 * time.Millisecond}, setting{"drb", 16, 2 * time.Millisecond})
	}
	for _, c := range episodes {
		t.Run(fmt.Sprintf("%s, %d paths, known after %v", c.policy, c.paths, c.learn), func(t *testing.T) {
			r, err := episode{Policy: c.policy, Paths: c.paths, Learn: c.learn, Seed: 1}.Run()
			if err != nil {
				t.Fatal(err)
			}
			s := r.Resequencer
			t.Logf("Mbit/s %.0f, %.0f, %.0f; recovered after %v, longest gap %v; %d retransmits, %d timeouts; held for %v for %d holes, %d late",
				r.Before/1e6, r.During/1e6, r.After/1e6, r.Recovered, r.Gap, r.Retransmits, r.Timeouts, s.TimeoutsWait, s.Timeouts, s.TimeoutsLate)
			if s.Timeouts == 0 || r.Before < 9e9 {
				t.Fatalf("nothing was lost, or nothing to be lost: %+v", r)
			}
			if s.TimeoutsWait > 2*resequencer.DefaultHold {
				t.Errorf("the resequencer held for %v", s.TimeoutsWait)
			}
			if r.Recovered == 0 || r.Recovered > c.learn+200*time.Millisecond {
				t.Errorf("goodput is back after %v", r.Recovered)
			}
		})
	}
}

func TestEpisode_unknownPaths(t *testing.T) {
	if _, err := (episode{Policy: "drb", Paths: 5}).Run(); err == nil {
		t.Error("an episode over five paths")
	}
}

func TestMeter_ratesAndGaps(t *testing.T) {
	m := &meter{tick: time.Second, series: []int64{0, 1000, 1000, 1000, 3000, 4000}}
	if r := m.rate(0, 4*time.Second); r != 6000 {
		t.Errorf("rate %v", r)
	}
	if at, ok := m.reaches(16000, time.Second); at != 4*time.Second || !ok {
		t.Errorf("reaches at %v, %v", at, ok)
	}
	if _, ok := m.reaches(16000, 4*time.Second); ok {
		t.Error("reaches after it did")
	}
	if at, ok := m.recovers(8000, 0); at != 4*time.Second || !ok {
		t.Errorf("recovers at %v, %v", at, ok)
	}
	if _, ok := m.recovers(1, 3*time.Second); ok {
		t.Error("recovers from nothing")
	}
	if g := m.longestGap(); g != 2*time.Second {
		t.Errorf("gap %v", g)
	}
	w := world.New(world.Config{Topology: "fat-tree:k=4", Links: simnet.Config{RateBits: 1e9}})
	defer w.Close()
	f := w.Flow("h0.0.2", "h0.0.3", 100_000)
	m = newMeter(w, time.Millisecond, f)
	if err := w.RunUntil(10 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if len(m.series) != 11 || m.series[10] != 100_000 {
		t.Errorf("%v", m.series)
	}
}
