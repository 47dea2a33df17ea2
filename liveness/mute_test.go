package liveness

import (
	"testing"
	"time"

	"weft/encap"
	"weft/topology"
)

// requests lets time pass and counts the requests that a host sends to another.
func (s *world) requests(h *simHost, dst topology.NodeID, d time.Duration) (n int) {
	s.sent = func(from *simHost, p *Probe) {
		if from == h && p.Kind() == encap.ProbeRequest && p.Dst == s.topo.Node(dst).Addr {
			n++
		}
	}
	s.run(s.now + d)
	s.sent = nil
	return n
}

// steady is how many requests a second a host that answers gets, in these tests:
// four paths every 20 ms, give or take a quarter.
const steady = 150

// A host without weft gets a burst, and from then on ever fewer probes; when it
// begins to run weft that is found within the bound.
func TestWatcher_plainGetsFewProbes(t *testing.T) {
	for seed := range uint64(3) {
		s := newWorld(t, "fat-tree:k=4", seed)
		s.mute[15] = true
		h := s.watch(0, Config{})
		s.keepActive(h, 15)
		s.keepActive(h, 14)
		s.requests(h, 15, time.Second)
		if n := s.requests(h, 15, 30*time.Second); n < 3 || n > 6 { // after 1, 3, 7, 15 s, give or take
			t.Errorf("seed %d: %d requests while it backs off", seed, n)
		}
		const bounds = 20
		if n := s.requests(h, 15, bounds*maxMute); n < bounds*9/10 || n > bounds*11/10 {
			t.Errorf("seed %d: %d requests in %d times the bound", seed, n, bounds)
		}
		if n := s.requests(h, 14, time.Second); n < steady {
			t.Errorf("seed %d: %d requests in a second to a host that answers", seed, n)
		}
		if h.w.Stats().Muted != 1 {
			t.Errorf("seed %d: %+v", seed, h.w.Stats())
		}
		s.mute[15] = false
		s.run(s.now + maxMute*5/4)
		if n := s.requests(h, 15, time.Second); n < steady {
			t.Errorf("seed %d: %d requests in a second after it has begun to run weft", seed, n)
		}
	}
}

// The bound holds whenever there is traffic: what falls into a pause is made up for
// when it ends.
func TestWatcher_plainIsFoundThoughTrafficPauses(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 3)
	s.mute[15] = true
	h := s.watch(0, Config{})
	burst := func() {
		h.w.Active(s.topo.Node(15).Addr, s.topo.Node(15).Addr, s.now)
		s.settle(h)
	}
	burst()
	s.run(7 * time.Second)
	n := 0
	for range 60 {
		burst()
		n += s.requests(h, 15, 7*time.Second) // of which a second counts as active
	}
	if n < 18 || n > 36 { // 420 s, by 12 to 20 s, and up to 6 s more each time
		t.Errorf("%d requests in 420 s", n)
	}
	s.run(s.now + maxMute*5/4)
	s.mute[15] = false
	burst()
	if n := s.requests(h, 15, 500*time.Millisecond); n < steady/4 {
		t.Errorf("%d requests after it has begun to run weft", n)
	}
}

// Whoever sends probes runs weft.
func TestWatcher_plainThatIsHeardIsTriedAtOnce(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 4)
	s.mute[15] = true
	h := s.watch(0, Config{})
	s.keepActive(h, 15)
	s.run(100 * time.Second)
	heard := func(from topology.NodeID) {
		h.w.Heard(s.topo.Node(from).Addr, s.now)
		s.settle(h)
	}
	heard(14) // who is not watched
	if n := s.requests(h, 15, 100*time.Millisecond); n != 0 {
		t.Errorf("%d requests after another was heard", n)
	}
	// Forged, it gets one probe, and no more than one an interval.
	was := s.requests(h, 15, 0)
	for range 1000 {
		heard(15)
		was += s.requests(h, 15, 100*time.Microsecond)
	}
	if was < 3 || was > 6 {
		t.Errorf("%d requests in 100 ms", was)
	}
	s.run(s.now + time.Second)
	s.mute[15] = false
	heard(15)
	s.run(s.now + 2*time.Millisecond)
	if n := s.requests(h, 15, time.Second); n < steady {
		t.Errorf("%d requests in a second", n)
	}
}

// A host that has answered is not taken for a plain one when its paths die: it is
// tried every second by several paths, for a minute; and for as long as this host
// hears nobody at all.
func TestWatcher_deadIsNotPlain(t *testing.T) {
	for name, c := range map[string]struct {
		link string
		dead time.Duration
	}{
		"its own link":                      {"h3.1.3-e3.1", 55 * time.Second},
		"the link of who watches":           {"h0.0.2-e0.0", 55 * time.Second},
		"the link of who watches, for long": {"h0.0.2-e0.0", 20 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWorld(t, "fat-tree:k=4", 7)
			h := s.watch(s.node("h0.0.2"), Config{})
			dst := s.node("h3.1.3")
			s.keepActive(h, dst)
			s.run(time.Second)
			if n := s.requests(h, dst, time.Second); n < steady {
				t.Fatalf("%d requests in a second", n)
			}
			for range 2 {
				s.both(s.link(c.link), fault{loss: 1})
				s.run(s.now + c.dead)
				if n := s.requests(h, dst, 4*time.Second); n < 12 || n > 24 {
					t.Errorf("%d requests in 4 s while it is dead", n)
				}
				clear(s.faults)
				s.run(s.now + 5*time.Second/4)
				if n := s.requests(h, dst, time.Second); n < steady {
					t.Errorf("%d requests in a second after it has returned", n)
				}
			}
		})
	}
}

// A host that has ceased to run weft is found out after some time.
func TestWatcher_answeredOnceIsPlainInTheEnd(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 8)
	h := s.watch(0, Config{})
	s.keepActive(h, 15)
	s.run(time.Second)
	s.mute[15] = true
	s.run(s.now + 2*time.Minute)
	const bounds = 20
	if n := s.requests(h, 15, bounds*maxMute); n < bounds*9/10 || n > bounds*11/10 {
		t.Errorf("%d requests in %d times the bound", n, bounds)
	}
	s.mute[15] = false
	s.run(s.now + maxMute*5/4)
	if n := s.requests(h, 15, time.Second); n < steady {
		t.Errorf("%d requests in a second after it has returned", n)
	}
}

// What link-state updates say is up again is tried at once.
func TestWatcher_muteIsTriedWhenItsLinkIsUp(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 9)
	s.mute[15] = true
	h := s.watch(0, Config{})
	s.keepActive(h, 15)
	s.run(100 * time.Second)
	if err := h.w.SetTopology(s.topo.Without(s.link("e3.1-a3.2")), s.now); err != nil {
		t.Fatal(err)
	}
	s.settle(h)
	s.mute[15] = false
	if err := h.w.SetTopology(s.topo, s.now); err != nil {
		t.Fatal(err)
	}
	s.settle(h)
	s.run(s.now + 20*time.Millisecond)
	if n := s.requests(h, 15, time.Second); n < steady {
		t.Errorf("%d requests in a second", n)
	}
}
