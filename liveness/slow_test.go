package liveness

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/topology"
)

const simRate = 20e6 // bits per second of a link

// A link at a tenth of its rate is found, and no other; what is said of it names the
// switch; traffic is the better for it; and after the heal all is as it was.
func TestWatcher_findsTheSlowLink(t *testing.T) {
	for _, c := range []struct {
		name, spec, dst, link string
		want                  []string
		says                  string // of the destination's rack
	}{
		{"own core link", "fat-tree:k=4", "h3.1.3", "a0.2-c1.1", []string{"a0.2-c1.1"}, "less by c1.1: slow"},
		{"own edge link", "fat-tree:k=4", "h3.1.3", "e0.0-a0.3", []string{"e0.0-a0.3"}, "less by c2.1, c2.2: slow"},
		{"core link of the destination's pod", "fat-tree:k=4", "h3.1.3", "a3.3-c2.2", []string{"h3.1.3 by c2.2"}, "less by c2.2: slow"},
		{"edge link of the destination's rack", "fat-tree:k=4", "h3.1.3", "e3.1-a3.2", []string{"h3.1.3 by c1.1", "h3.1.3 by c1.2"}, "less by c1.1, c1.2: slow"},
		{"own spine link", "leaf-spine:leaves=4,spines=4,hosts=2", "h0.2.2", "e0.0-a0.1", []string{"e0.0-a0.1"}, "less by a0.1: slow"},
		{"one of two spines", "leaf-spine:leaves=4,spines=2,hosts=2", "h0.2.2", "e0.2-a0.1", []string{"h0.2.2 by a0.1"}, "less by a0.1: slow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(fewer(3)) {
				s := newWorld(t, c.spec, seed)
				s.rated(simRate)
				s.slowed(s.link(c.link), simRate/10)
				h, dst := s.watch(s.node("h0.0.2"), Config{MTU: 1500}), s.node(c.dst)
				var found time.Duration
				s.check = func(h *simHost, _ *topology.Topology) {
					// Of several, one may be found before the others.
					for _, n := range names(h.topo) {
						if !slices.Contains(c.want, n) && len(c.want) == 1 && c.name != "own edge link" {
							t.Errorf("seed %d, at %v: %s is avoided: %+v", seed, s.now, n, h.w.Suspects())
						}
					}
					if found == 0 && slices.Equal(names(h.topo), c.want) {
						found = s.now
					}
				}
				var flows []*flow
				for range 8 {
					flows = append(flows, s.flow(h, dst))
				}
				s.run(4 * time.Second)
				if found == 0 || found > 2500*time.Millisecond {
					t.Errorf("seed %d: found at %v; now avoids %v, %+v", seed, found, names(h.topo), h.w.Suspects())
				}
				rateOf := func(d time.Duration) (sum float64) {
					for _, f := range flows {
						sum += f.rate(d)
					}
					return sum
				}
				rateOf(1)
				s.run(16 * time.Second)
				rate := rateOf(12 * time.Second)
				t.Logf("seed %d: found at %v, %.1f Mbit/s, %d times slow", seed, found, rate/1e6, h.w.Stats().Slow)
				if rate < 0.8*simRate {
					t.Errorf("seed %d: %.1f Mbit/s", seed, rate/1e6)
				}
				why := h.w.Carriage().Why(s.edge(dst))
				if !strings.Contains(why, c.says) {
					t.Errorf("seed %d: of the rack it says %q", seed, why)
				}
				for _, p := range h.w.Paths() {
					if slow := p.State == Slow; slow != strings.HasPrefix(p.Why, "slow: for a second every probe took at least") {
						t.Errorf("seed %d: %+v", seed, p)
					}
				}
				for _, f := range flows {
					f.ended = true
				}
				s.slowed(s.link(c.link), simRate)
				s.run(s.now + slowMost*5/4 + forgetIdle + 5*time.Second)
				if why := h.w.Carriage().Why(s.edge(dst)); len(names(h.topo)) > 0 || why != "" || len(h.w.slows.paths) > 0 {
					t.Errorf("seed %d, after the heal: avoids %v, says %q", seed, names(h.topo), why)
				}
			}
		})
	}
}

// TestWatcher_loadIsNotSlowness has all hosts send as much as they can, by all paths:
// every queue is full at times, and nothing is wrong.
func TestWatcher_loadIsNotSlowness(t *testing.T) {
	for name, pairs := range map[string]func(s *world, i int) int{
		"permutation": func(s *world, i int) int { return (i + 8) % 16 },
		"neighbours":  func(s *world, i int) int { return (i + 2) % 16 },
		"incast":      func(s *world, i int) int { return (i / 8 * 8) ^ 8 },
		"random":      func(s *world, i int) int { return s.rng.IntN(16) },
	} {
		for _, rate := range []float64{simRate, 5 * simRate} {
			d, seeds := 5*time.Second, fewer(2)
			if rate > simRate { // packets take as long to simulate
				d, seeds = 2500*time.Millisecond, 1
			}
			t.Run(fmt.Sprintf("%s, %.0f Mbit/s", name, rate/1e6), func(t *testing.T) {
				inShort(t)
				t.Parallel()
				for seed := range uint64(seeds) {
					s := newWorld(t, "fat-tree:k=4", seed)
					s.rated(rate)
					for i := range 16 {
						s.watch(topology.NodeID(i), Config{MTU: 1500})
					}
					s.check = func(h *simHost, _ *topology.Topology) {
						t.Errorf("seed %d, at %v: %s avoids %v: %+v", seed, s.now, s.topo.Node(h.id).Name, names(h.topo), h.w.Suspects())
					}
					var flows []*flow
					for i, h := range s.list {
						if dst := topology.NodeID(pairs(s, i)); !s.topo.Paths(h.id, dst).Direct() {
							flows = append(flows, s.flow(h, dst), s.flow(h, dst))
						}
					}
					s.run(d)
					var worst time.Duration
					sum, asData := 0.0, uint64(0)
					for _, f := range flows {
						sum += f.rate(d)
						asData += f.from.w.Stats().AsData
						for i := range f.from.w.near.paths {
							worst = max(worst, f.from.w.near.paths[i].slow.whole.least)
						}
					}
					t.Logf("seed %d: %d flows, %.0f Mbit/s, queues stood for %v at worst, %d probes", seed, len(flows), sum/1e6, worst, asData)
				}
			})
		}
	}
}

// Others, who do not spray, fill a link for good. It is avoided, ever longer at a time,
// and not more often than the holds allow.
func TestWatcher_doesNotOscillate(t *testing.T) {
	for seed := range uint64(fewer(2)) {
		s := newWorld(t, "fat-tree:k=4", seed)
		s.rated(simRate)
		h := s.watch(s.node("h0.0.2"), Config{MTU: 1500})
		full := s.queues[side{s.link("a0.2-c1.1"), s.topo.Link(s.link("a0.2-c1.1")).A == s.node("a0.2")}]
		var fill func()
		fill = func() { // 99 % of what the link carries comes from elsewhere
			full.busy = max(full.busy, s.now) + 5940*time.Microsecond
			full.busy = min(full.busy, s.now+30*time.Millisecond)
			s.after(6*time.Millisecond, fill)
		}
		fill()
		s.flow(h, s.node("h3.1.3"))
		const d = 150 * time.Second
		s.run(d)
		// 2, 4, 8, 16, 32, 60 s, each a quarter less at most, and half a second between.
		n := h.w.Stats().Slow
		t.Logf("seed %d: %d times slow, %d changes", seed, n, h.changes)
		if n < 3 || n > 8 || h.changes > 16 || h.w.Carriage().Why(s.edge(15)) == "" {
			t.Errorf("seed %d: found slow %d times in %v, %d changes, says %q", seed, n, d, h.changes, h.w.Carriage().Why(s.edge(15)))
		}
	}
}

// Who answers late decides on the paths to itself, as far as the floor lets it, and on
// nobody else's.
func TestWatcher_whoAnswersLateSlowsItself(t *testing.T) {
	for name, liars := range map[string][]string{
		"one": {"h3.1.3"}, "two of its rack": {"h3.1.3", "h3.1.2"}, "two racks": {"h3.1.3", "h3.0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(fewer(3)) {
				s := newWorld(t, "fat-tree:k=4", seed)
				h := s.watch(s.node("h0.0.2"), Config{})
				s.lags = make(map[topology.NodeID]func(int) time.Duration)
				s.check = func(h *simHost, _ *topology.Topology) {
					if len(h.topo.Down()) > 0 {
						t.Errorf("seed %d, at %v: %v is down", seed, s.now, names(h.topo))
					}
					for _, a := range h.topo.Avoided() {
						if dst, _ := s.topo.ByAddr(a.Dst); s.lags[dst] == nil {
							t.Errorf("seed %d, at %v: %v is avoided", seed, s.now, names(h.topo))
						}
					}
				}
				for _, l := range liars {
					s.lags[s.node(l)] = func(path int) time.Duration { return time.Duration(path%2) * 50 * time.Millisecond }
					s.talk(h, s.node(l), 200)
				}
				s.talk(h, s.node("h3.1.2"), 200)
				s.talk(h, s.node("h1.0.2"), 200)
				s.run(10 * time.Second)
				for _, l := range liars {
					if got := h.topo.Paths(h.id, s.node(l)).Live; len(got) < 2 {
						t.Errorf("seed %d: %v are left to %s", seed, got, l)
					}
				}
				if h.w.Stats().Slow == 0 {
					t.Errorf("seed %d: nothing was slow, so this shows nothing", seed)
				}
			}
		})
	}
}

// All that leads out of the pod goes by one of its two switches, since nothing above the
// other one decapsulates: that one waits and the other does not, and neither is slow.
func TestWatcher_loadOnTheRestIsNotSlowness(t *testing.T) {
	for seed := range uint64(fewer(3)) {
		s := newWorld(t, "fat-tree:k=4", seed)
		s.rated(simRate)
		s.queues[side{s.topo.Ports(s.node("h0.0.2"))[0].Link, true}].rate = 2 * simRate
		s.deafen(true, "c1.1", "c1.2")
		h := s.watch(s.node("h0.0.2"), Config{MTU: 1500})
		for range 8 {
			s.flow(h, s.node("h3.1.3"))
		}
		s.run(8 * time.Second)
		worst := time.Duration(0)
		for i := range h.w.near.paths {
			worst = max(worst, h.w.near.paths[i].slow.whole.least)
		}
		if worst < slowLeast {
			t.Errorf("seed %d: at most %v were waited, so this shows nothing", seed, worst)
		}
		if n := h.w.Stats().Slow; n > 0 {
			t.Errorf("seed %d: %d times slow: %+v, %s", seed, n, h.w.Suspects(), h.w.Carriage().Why(s.edge(s.node("h0.1.2"))))
		}
	}
}
