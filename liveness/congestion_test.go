package liveness

import (
	"testing"
	"time"

	"weft/topology"
)

// congested is a host that talks to three others, in a world where nothing is
// broken.
func congested(t *testing.T, seed uint64, c Config) (*world, *simHost) {
	s := newWorld(t, "fat-tree:k=4", seed)
	s.check = func(h *simHost, _ *topology.Topology) {
		t.Fatalf("seed %d, at %v: suspects %v: %+v", seed, s.now, names(h.topo), h.w.Suspects())
	}
	h := s.watch(s.node("h0.0.2"), c)
	for _, dst := range []string{"h3.1.3", "h1.0.2", "h0.1.2"} {
		s.talk(h, s.node(dst), 500)
	}
	return s, h
}

func TestWatcher_congestionIsNotDeath(t *testing.T) {
	// burst has the given sides lose for a time that a queue takes to drain.
	burst := func(s *world, sides []side, loss float64, d time.Duration) {
		for _, k := range sides {
			s.faults[k] = fault{loss: loss}
		}
		s.after(d, func() {
			for _, k := range sides {
				delete(s.faults, k)
			}
		})
	}
	every := func(s *world, gap time.Duration, f func()) {
		var again func()
		again = func() { f(); s.after(gap/2+time.Duration(s.rng.Int64N(int64(gap))), again) }
		s.after(gap, again)
	}
	for name, c := range map[string]struct {
		config Config
		setUp  func(s *world)
	}{
		"nothing":           {Config{}, func(*world) {}},
		"1 % on every link": {Config{}, func(s *world) { s.all.loss = 0.01 }},
		"5 % on every path": {Config{}, func(s *world) { s.all.loss = 0.009 }},
		"5 % on every link": {Config{}, func(s *world) { s.all.loss = 0.05 }},
		"5 %, no probes":    {Config{Budget: -1}, func(s *world) { s.all.loss = 0.05 }},
		"5 %, few probes":   {Config{Budget: 50}, func(s *world) { s.all.loss = 0.05 }},
		"5 %, fast probes":  {Config{Interval: 5 * time.Millisecond}, func(s *world) { s.all.loss = 0.05 }},
		"incast at the host": {Config{}, func(s *world) {
			down := []side{{s.topo.Ports(s.node("h0.0.2"))[0].Link, false}}
			every(s, 300*time.Millisecond, func() { burst(s, down, s.rng.Float64(), 60*time.Millisecond) })
		}},
		"total incast at the host": {Config{}, func(s *world) {
			down := []side{{s.topo.Ports(s.node("h0.0.2"))[0].Link, false}}
			every(s, 500*time.Millisecond, func() { burst(s, down, 1, 150*time.Millisecond) })
		}},
		"incast at a peer": {Config{}, func(s *world) {
			down := []side{{s.topo.Ports(s.node("h3.1.3"))[0].Link, false}}
			every(s, 300*time.Millisecond, func() { burst(s, down, s.rng.Float64(), 100*time.Millisecond) })
		}},
		"bursts on two paths": {Config{}, func(s *world) {
			two := []side{{s.link("a0.2-c1.1"), true}, {s.link("a0.3-c2.1"), true}}
			every(s, 500*time.Millisecond, func() { burst(s, two, 0.9, 30*time.Millisecond) })
		}},
		"bursts on one far path": {Config{}, func(s *world) {
			one := []side{{s.link("a3.2-c1.1"), false}}
			every(s, 500*time.Millisecond, func() { burst(s, one, 0.9, 30*time.Millisecond) })
		}},
		"long bursts on two paths": {Config{}, func(s *world) {
			two := []side{{s.link("a0.2-c1.1"), true}, {s.link("a0.3-c2.1"), true}}
			every(s, time.Second, func() { burst(s, two, 0.25, 150*time.Millisecond) })
		}},
		"bursts on two paths, no probes": {Config{Budget: -1}, func(s *world) {
			two := []side{{s.link("a0.2-c1.1"), true}, {s.link("a0.3-c2.1"), true}}
			every(s, 500*time.Millisecond, func() { burst(s, two, 0.9, 30*time.Millisecond) })
		}},
		"delay spikes": {Config{}, func(s *world) {
			// A round trip takes 0.3 ms, and now and then ten times, and a hundred
			// times as long, for as long as it takes.
			every(s, 200*time.Millisecond, func() {
				s.all.delay = time.Duration(1+s.rng.IntN(20)) * 150 * time.Microsecond
				s.after(50*time.Millisecond, func() { s.all.delay = 0 })
			})
		}},
		"delay spikes of one path": {Config{}, func(s *world) {
			up := side{s.link("a0.2-c1.1"), true}
			every(s, 200*time.Millisecond, func() {
				s.faults[up] = fault{delay: time.Duration(s.rng.IntN(30)) * time.Millisecond}
				s.after(100*time.Millisecond, func() { delete(s.faults, up) })
			})
		}},
		"a peer dies": {Config{}, func(s *world) {
			every(s, 5*time.Second, func() {
				l := s.topo.Ports(s.node("h3.1.3"))[0].Link
				s.both(l, fault{loss: 1})
				s.after(2*time.Second, func() { s.both(l, fault{}) })
			})
		}},
		"own link flaps": {Config{}, func(s *world) {
			every(s, 3*time.Second, func() {
				l := s.topo.Ports(s.node("h0.0.2"))[0].Link
				s.both(l, fault{loss: 1})
				s.after(time.Duration(s.rng.IntN(2000))*time.Millisecond, func() { s.both(l, fault{}) })
			})
		}},
		"a peer that does not answer": {Config{}, func(s *world) { s.mute[s.node("h3.1.3")] = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(fewer(3)) {
				s, h := congested(t, seed, c.config)
				c.setUp(s)
				s.run(time.Duration(*soak*fewer(20)) * time.Second)
				if n := h.w.Stats().Quarantined; n > 0 {
					t.Errorf("seed %d: %d paths quarantined", seed, n)
				}
			}
		})
	}
}
