package liveness

import (
	"testing"
	"time"

	"weft/topology"
)

// lostLately sums what a host's paths to dst have lost lately, by number, and what was sent.
func (h *simHost) lostLately(dst string, s *world) (sent, lost float32, by map[int]float32) {
	by = map[int]float32{}
	for _, p := range h.w.Paths() {
		if p.Dst == s.topo.Node(s.node(dst)).Addr {
			sent += p.Lately.Sent
			lost += p.Lately.Lost
			by[p.Path] += p.Lately.Lost
		}
	}
	return sent, lost, by
}

// Probes count as lost only if they never come home: not those that are late, and not those
// to a host that answers nobody any more.
func TestWatcher_latelyLost(t *testing.T) {
	for _, c := range []struct {
		name string
		does func(s *world)
		want func(sent, lost float32, by map[int]float32) bool
	}{
		{"nothing", func(*world) {}, func(_, lost float32, _ map[int]float32) bool { return lost == 0 }},
		{"late answers", func(s *world) {
			n := 0
			s.lags = map[topology.NodeID]func(int) time.Duration{s.node("h3.1.3"): func(path int) time.Duration {
				if n++; path == 1 && n%5 == 0 {
					return time.Duration(40+n%3*50) * time.Millisecond
				}
				return 0
			}}
		}, func(_, lost float32, _ map[int]float32) bool { return lost == 0 }},
		{"the peer's weft is stopped", func(s *world) { s.mute[s.node("h3.1.3")] = true },
			func(_, lost float32, _ map[int]float32) bool { return lost == 0 }},
		{"a link loses 3 %", func(s *world) { s.both(s.link("a3.2-c1.2"), fault{loss: 0.015}) },
			func(sent, lost float32, by map[int]float32) bool {
				return lost > 0 && by[1] == lost && lost/sent*4 > 0.01 && lost/sent*4 < 0.06
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newWorld(t, "fat-tree:k=4", 7)
			s.watch(s.node("h3.1.3"), Config{})
			h := s.watch(s.node("h0.0.2"), Config{})
			s.keepActive(h, s.node("h3.1.3"))
			s.run(2 * time.Second)
			c.does(s)
			for _, until := range []time.Duration{3, 5, 12, 18} {
				s.run(until * time.Second)
				sent, lost, by := h.lostLately("h3.1.3", s)
				if sent == 0 || until >= 12 && !c.want(sent, lost, by) || until < 12 && lost > 0 && !c.want(sent, lost, by) {
					t.Errorf("after %d s: %v lost of %v, by path %v", until, lost, sent, by)
				}
			}
		})
	}
}
