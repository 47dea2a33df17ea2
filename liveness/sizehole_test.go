package liveness

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A far half that loses all that is longer than a probe, there from the start or later,
// under loss: it leaves use though its probes are answered, alone, and comes back when it
// is mended.
func TestSize_farBlackHole(t *testing.T) {
	for seed := range uint64(12) {
		s := newWorld(t, "fat-tree:k=4", seed)
		s.all.loss = []float64{0, 0.002, 0.005}[seed%3]
		dst, other := s.node("h3.1.3"), s.node("h2.0.2")
		h := s.watch(s.node("h0.0.2"), Config{MTU: 1500})
		s.keepActive(h, dst)
		s.keepActive(h, other)
		if seed%2 == 1 {
			s.run(2 * time.Second)
		}
		l := s.link("a3.2-c1.1")
		broken := s.now
		s.faults[side{l, false}] = fault{mtu: 200}
		s.run(s.now + 100*time.Millisecond)
		for h.uses(l, dst) {
			if s.run(s.now + time.Millisecond); s.now > broken+5*time.Second {
				t.Fatalf("seed %d: the link is still used: %q", seed, h.w.Carriage().Why(s.edge(dst)))
			}
		}
		took := s.now - broken
		for end := s.now + 10*time.Second; s.now < end; s.run(s.now + 10*time.Millisecond) {
			c := h.w.Carriage()
			if down := names(h.topo); !slices.Equal(down, []string{"a3.2-c1.1"}) || c.Plain(s.edge(dst)) || c.MTU(s.edge(dst)) != 1480 {
				t.Fatalf("seed %d: after %v %v are down; plain %v, MTU %d: %q", seed, s.now-broken, down, c.Plain(s.edge(dst)), c.MTU(s.edge(dst)), c.Why(s.edge(dst)))
			}
		}
		why := h.w.Carriage().Why(s.edge(dst))
		if !strings.Contains(why, "not by c1.1: packets as long") || !strings.Contains(why, "a link on the way has a smaller MTU, or loses longer packets") {
			t.Errorf("seed %d: %q", seed, why)
		}
		if why := h.w.Carriage().Why(s.edge(other)); why != "" {
			t.Errorf("seed %d: of another rack: %q", seed, why)
		}
		clear(s.faults)
		mended := s.now
		for !h.uses(l, dst) {
			if s.run(s.now + time.Millisecond); s.now > mended+2*lastRaise {
				t.Fatalf("seed %d: the link is mended, and not used", seed)
			}
		}
		t.Logf("seed %d: out of use after %v, in use again after %v", seed, took, s.now-mended)
	}
}

// If most far halves to a rack lose what is long, the floor keeps them in use, and packets
// to the rack get no shorter, as that would not help.
func TestSize_farBlackHolesAndTheFloor(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 3)
	dst := s.node("h3.1.3")
	h := s.watch(s.node("h0.0.2"), Config{MTU: 1500})
	s.keepActive(h, dst)
	s.run(2 * time.Second)
	for _, name := range []string{"a3.2-c1.1", "a3.2-c1.2", "a3.3-c2.1"} {
		s.faults[side{s.link(name), false}] = fault{mtu: 200}
	}
	for end := s.now + 20*time.Second; s.now < end; s.run(s.now + 10*time.Millisecond) {
		if c, live := h.w.Carriage(), len(h.topo.Paths(h.id, dst).Live); c.Plain(s.edge(dst)) || c.MTU(s.edge(dst)) != 1480 || live < 2 {
			t.Fatalf("at %v: plain %v, MTU %d, %d paths: %q", s.now, c.Plain(s.edge(dst)), c.MTU(s.edge(dst)), live, c.Why(s.edge(dst)))
		}
	}
}

// A peer that knows padding no more, as one of an older version in its place, loses no path
// for longer than it takes to see that it is all paths. When it knows padding again, so do we.
func TestSize_peerGetsOlder(t *testing.T) {
	for seed := range uint64(6) {
		s := newWorld(t, "fat-tree:k=4", seed)
		dst := s.node("h3.1.3")
		h := s.watch(s.node("h0.0.2"), Config{MTU: 1500})
		s.keepActive(h, dst)
		s.run(2 * time.Second)
		check := func(d time.Duration, least int) {
			t.Helper()
			for end := s.now + d; s.now < end; s.run(s.now + 10*time.Millisecond) {
				if c, live := h.w.Carriage(), len(h.topo.Paths(h.id, dst).Live); c.Plain(s.edge(dst)) || c.MTU(s.edge(dst)) != 1480 || live < least {
					t.Fatalf("seed %d, at %v: plain %v, MTU %d, %d paths: %q", seed, s.now, c.Plain(s.edge(dst)), c.MTU(s.edge(dst)), live, c.Why(s.edge(dst)))
				}
			}
		}
		s.old[dst] = true
		check(5*time.Second, 2)
		check(foreignFull+10*time.Second, 4)
		s.old[dst] = false
		check(2*foreignFull, 4)
		s.faults[side{s.link("a3.2-c1.1"), false}] = fault{mtu: 200}
		for limit := s.now + 5*time.Second; h.uses(s.link("a3.2-c1.1"), dst); s.run(s.now + time.Millisecond) {
			if s.now > limit {
				t.Fatalf("seed %d: the link is used though the peer knows padding again", seed)
			}
		}
	}
}
