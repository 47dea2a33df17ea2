package liveness

import (
	"slices"
	"testing"
	"time"

	"weft/encap"
)

// A path that carries longer packets again while it is tried for that: the first of the
// tries is lost, the others come home. It is used again, as are those of which all come
// home.
func TestSize_passesAgainWhileTried(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		s := newWorld(t, "fat-tree:k=4", seed)
		h := s.watch(0, Config{MTU: 1500})
		s.keepActive(h, 15)
		s.run(2 * time.Second)
		link := s.link("a3.2-c1.1")
		used := func() bool { return slices.Contains(h.topo.Paths(0, 15).Live, 0) }
		s.holes(1400, link)
		for limit := s.now + 5*time.Second; used(); s.run(s.now + time.Millisecond) {
			if s.now > limit {
				t.Fatalf("seed %d: the path is used: %q", seed, h.w.Carriage().Why(s.edge(15)))
			}
		}
		tried := false
		s.sent = func(_ *simHost, p *Probe) {
			if !tried && p.Dst == s.topo.Node(15).Addr && p.Path == 0 && p.Kind() == encap.ProbeRequest && p.Len()+encap.Overhead > 1400 {
				tried = true
				s.after(time.Microsecond, func() { s.holes(0, link) })
			}
		}
		for limit := s.now + 40*time.Second; !tried || !used(); s.run(s.now + 10*time.Millisecond) {
			if s.now > limit {
				t.Fatalf("seed %d: tried %t, and the path is not used again: %q", seed, tried, h.w.Carriage().Why(s.edge(15)))
			}
		}
	}
}
