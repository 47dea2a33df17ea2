package liveness

import (
	"testing"
	"time"

	"weft/encap"
)

// Without traffic a Watcher sends a tenth of the boomerangs. It still finds a dead switch, and
// all boomerangs are as frequent as ever from the first doubt, or the first traffic, on.
func TestRests(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 1)
	id, dst := s.node("h0.0.2"), s.node("h3.1.3")
	boomerangs := make(map[string]int) // by bouncing switch
	all := 0
	s.sent = func(of *simHost, p *Probe) {
		if of.id == id && p.Kind() == encap.Boomerang {
			boomerangs[p.Via.String()]++
			all++
		}
	}
	h := s.watch(id, Config{Rests: true})
	s.watch(dst, Config{})
	count := func(d time.Duration) int {
		clear(boomerangs)
		all = 0
		s.run(s.now + d)
		return all
	}
	s.run(restAfter - time.Second)
	near := len(h.w.near.paths)
	full := count(time.Second / 2)
	if want := near * int(time.Second/2/h.w.config.Interval); full < want*8/10 || full > want*12/10 {
		t.Fatalf("%d boomerangs in half a second, want about %d", full, want)
	}
	s.run(s.now + 2*time.Second)
	if got := count(5 * time.Second); !h.w.Resting() || got > full*10*12/100 || got < full*10*8/100 {
		t.Errorf("at rest %d boomerangs in 5 s, and %d in half a second before", got, full)
	}

	// Traffic comes: every switch is probed within an Interval and a half.
	h.w.Active(s.topo.Node(dst).Addr, s.topo.Node(dst).Addr, s.now)
	s.settle(h)
	count(h.w.config.Interval * 3 / 2)
	if h.w.Resting() || len(boomerangs) != near {
		t.Errorf("with traffic, resting %t: %v", h.w.Resting(), boomerangs)
	}
	s.run(s.now + 2*restAfter)
	if !h.w.Resting() {
		t.Fatal("it does not rest again")
	}

	// A switch dies meanwhile.
	dead := h.w.near.paths[0].via
	s.deaf[dead] = true
	died := s.now
	for h.w.Resting() && s.now < died+time.Second {
		s.run(s.now + time.Millisecond)
	}
	if took := s.now - died; took > 2*idleInterval*h.w.config.Interval {
		t.Errorf("the doubt comes after %v", took)
	}
	count(h.w.config.Interval * 3 / 2)
	if len(boomerangs) != near {
		t.Errorf("in doubt only %v are probed", boomerangs)
	}
	for len(h.topo.Down()) == 0 && h.w.stats.Unproved == 0 && s.now < died+5*time.Second {
		s.run(s.now + time.Millisecond)
	}
	if took := s.now - died; took > time.Second {
		t.Errorf("found dead after %v", took)
	}
	s.deaf[dead] = false
	s.run(s.now + time.Minute)
	if !h.w.Resting() || len(h.topo.Down()) > 0 {
		t.Errorf("after it is back: resting %t, down %v", h.w.Resting(), h.topo.Down())
	}
}

// Whoever has not asked for rest never rests, and neither does a Watcher before the carrier is
// proved.
func TestRests_onlyIfAskedAndProved(t *testing.T) {
	for _, rests := range []bool{false, true} {
		s := newWorld(t, "fat-tree:k=4", 2)
		h := s.watch(s.node("h0.0.2"), Config{Rests: rests})
		for i := range h.w.near.paths {
			s.deaf[h.w.near.paths[i].via] = rests
		}
		s.run(time.Minute)
		if h.w.Resting() {
			t.Errorf("rests: %t", rests)
		}
	}
}

// At rest with a small budget every switch is still probed in turn, none left out for want of
// it.
func TestRests_smallBudget(t *testing.T) {
	s := newWorld(t, "fat-tree:k=12", 1)
	id := s.node("h0.0.2")
	probed := make(map[string]bool)
	s.sent = func(of *simHost, p *Probe) {
		if p.Kind() == encap.Boomerang {
			probed[p.Via.String()] = true
		}
	}
	h := s.watch(id, Config{Rests: true, Budget: 300})
	s.run(s.now + 4*restAfter)
	if !h.w.Resting() {
		t.Fatal("it does not rest")
	}
	clear(probed)
	s.run(s.now + 3*idleInterval*h.w.config.Interval)
	if near := len(h.w.near.paths); near <= 2*atOnce || len(probed) != near {
		t.Errorf("in three turns at rest %d of %d switches were probed", len(probed), near)
	}
}
