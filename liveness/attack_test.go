package liveness

import (
	"slices"
	"testing"
	"time"

	"weft/topology"
)

// deny has a host send packets to another as talk does, by the paths that it has live,
// of which those that lost says have to be sent again, though every link is fine.
func (s *world) deny(h *simHost, dst topology.NodeID, perSecond float64, lost func(path int) bool) {
	gap := time.Duration(float64(time.Second) / perSecond)
	next := 0
	var send func()
	send = func() {
		s.after(gap/2+time.Duration(s.rng.Int64N(int64(gap))), send)
		h.w.Active(s.topo.Node(dst).Addr, s.topo.Node(dst).Addr, s.now)
		live := h.topo.Paths(h.id, dst).Live
		path := live[next%len(live)]
		next++
		h.w.Sent(s.topo.Node(dst).Addr, path, 1)
		if lost(path) {
			s.after(time.Duration(1+s.rng.IntN(20))*time.Millisecond, func() {
				h.w.Lost(s.topo.Node(dst).Addr, path, 1, s.now)
				s.settle(h)
			})
		}
		s.settle(h)
	}
	s.after(time.Duration(s.rng.Int64N(int64(gap))), send)
}

func lowerHalf(path int) bool { return path < 8 }

// A peer that does not acknowledge what comes by half of the paths, and does not
// answer the probes that come by them either, decides on nothing but what is sent to
// itself: all boomerangs, and all others of its rack and pod, say that they are fine.
func TestWatcher_aLiarCondemnsItsOwnPathsOnly(t *testing.T) {
	for name, c := range map[string]struct {
		liars   []string
		honest  []string
		silent  bool // the liars do not answer probes by these paths
		budget  float64
		avoided int // paths, of each liar
	}{
		"data":                             {[]string{"h3.1.3"}, []string{"h3.1.2", "h3.0.2", "h2.0.2"}, false, 0, 8},
		"probes":                           {[]string{"h3.1.3"}, []string{"h3.1.2", "h3.0.2", "h2.0.2"}, true, 0, 8},
		"with nobody else there":           {[]string{"h3.1.3"}, nil, true, 0, 8},
		"data, nobody is probed":           {[]string{"h3.1.3"}, []string{"h3.1.2", "h3.0.2", "h2.0.2"}, false, -1, 8},
		"two of its rack":                  {[]string{"h3.1.3", "h3.1.5"}, []string{"h3.1.2", "h3.0.2", "h2.0.2"}, true, 0, 8},
		"two racks, and others contradict": {[]string{"h3.1.3", "h3.2.3"}, []string{"h3.0.2", "h2.0.2"}, true, 0, 8},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(fewer(3)) {
				s := newWorld(t, "fat-tree:k=8", seed)
				h := s.watch(s.node("h0.0.2"), Config{Budget: c.budget})
				others := []string{"h3.0.3", "h3.1.4", "h1.0.2"} // to whom nothing is sent
				worst := 0
				s.check = func(h *simHost, _ *topology.Topology) {
					worst = max(worst, len(h.topo.Down()))
					for _, dst := range slices.Concat(c.honest, others) {
						if n := len(h.topo.Paths(h.id, s.node(dst)).Live); n < 16 && !t.Failed() {
							t.Errorf("seed %d, at %v: %d of 16 paths to %s are left", seed, s.now, n, dst)
						}
					}
				}
				for _, dst := range c.liars {
					s.deny(h, s.node(dst), 4000, lowerHalf)
					if c.silent {
						s.ignore(s.node(dst), lowerHalf)
					}
				}
				for _, dst := range c.honest {
					s.talk(h, s.node(dst), 1000)
				}
				s.run(4 * time.Second)
				t.Logf("seed %d: %d links are avoided at worst; now %v", seed, worst, names(h.topo))
				if worst > 0 {
					t.Errorf("seed %d: %d links are out of use", seed, worst)
				}
				for _, dst := range c.liars { // what they say is believed of themselves
					if n := len(h.topo.Paths(h.id, s.node(dst)).Live); n > 16-c.avoided+2 || n < 8 {
						t.Errorf("seed %d: %d paths to %s are in use", seed, n, dst)
					}
				}
			}
		})
	}
}

// ignore has a host not answer requests that come by some paths.
func (s *world) ignore(host topology.NodeID, by func(path int) bool) {
	if s.ignores == nil {
		s.ignores = make(map[topology.NodeID]func(int) bool)
	}
	s.ignores[host] = by
}

// Not lies: a link that loses what is as long as data, and no probes, is found by all
// that send over it, as soon as ever.
func TestWatcher_findsALinkThatLosesDataOnly(t *testing.T) {
	for seed := range uint64(fewer(3)) {
		s := newWorld(t, "fat-tree:k=4", seed)
		h := s.watch(s.node("h0.0.2"), Config{})
		l := s.link("a3.3-c2.2")
		var broken time.Duration
		dsts := []topology.NodeID{s.node("h3.1.3"), s.node("h3.0.2"), s.node("h3.0.3")}
		for _, dst := range dsts {
			s.deny(h, dst, 1000, func(path int) bool {
				links := s.topo.Paths(h.id, dst).Path(path).Links
				return broken > 0 && slices.Contains(links, l)
			})
		}
		s.run(time.Second)
		if len(names(h.topo)) > 0 {
			t.Fatalf("seed %d: %v while all is well", seed, names(h.topo))
		}
		broken = s.now
		for _, dst := range dsts {
			for h.uses(l, dst) {
				if s.run(s.now + time.Millisecond); s.now > broken+400*time.Millisecond {
					t.Fatalf("seed %d: %s is still sent to over the link", seed, s.topo.Node(dst).Name)
				}
			}
		}
		t.Logf("seed %d: all have left the link after %v", seed, s.now-broken)
	}
}

// A far link that dies for everybody is left by all within the time that it took when
// one destination's word was good for all, and by those to whom nothing was sent.
func TestWatcher_aDeadLinkIsDeadForAll(t *testing.T) {
	for seed := range uint64(fewer(20)) {
		s := newWorld(t, "fat-tree:k=4", seed)
		h := s.watch(s.node("h0.0.2"), Config{})
		dsts := []topology.NodeID{s.node("h3.1.3"), s.node("h3.0.2")}
		for _, dst := range dsts {
			s.talk(h, dst, 1000)
		}
		s.run(time.Second)
		l := s.link("a3.3-c2.2")
		s.both(l, fault{loss: 1})
		begin := s.now
		for _, dst := range dsts {
			for h.uses(l, dst) && s.now < begin+time.Second {
				s.run(s.now + time.Millisecond)
			}
		}
		each := s.now - begin
		for h.topo.Live(l) && s.now < begin+time.Second {
			s.run(s.now + time.Millisecond)
		}
		if each > 80*time.Millisecond || s.now-begin > 120*time.Millisecond {
			t.Errorf("seed %d: left after %v, known for all after %v", seed, each, s.now-begin)
		}
		clear(s.faults)
		s.run(s.now + 5*time.Second)
		if got := names(h.topo); len(got) > 0 {
			t.Errorf("seed %d: 5 s after the heal %v", seed, got)
		}
	}
}
