package liveness

import (
	"slices"
	"strings"
	"testing"
	"time"

	"weft/topology"
)

// names says what is out of use: links, and paths to single hosts.
func names(t *topology.Topology) (list []string) {
	for _, l := range t.Down() {
		list = append(list, t.LinkName(l))
	}
	for _, a := range t.Avoided() {
		list = append(list, t.HostName(a.Dst)+" by "+t.Node(t.PathsTo(a.Src, a.Dst).Bounce(a.Path)).Name)
	}
	return list
}

// One thing at a time is broken, long enough to be found, and mended again.
func TestWatcher_findsWhichLinkIsBroken(t *testing.T) {
	gone := fault{loss: 1}
	for _, c := range []struct {
		name, spec string
		src, dst   string
		fail       func(s *world)
		want       []string
		within     time.Duration
	}{
		{"own core link", "fat-tree:k=4", "h0.0.2", "h3.1.3",
			func(s *world) { s.both(s.link("a0.2-c1.1"), gone) }, []string{"a0.2-c1.1"}, 80 * time.Millisecond},
		{"own core link, upwards only", "fat-tree:k=4", "h0.0.2", "h3.1.3",
			func(s *world) { s.faults[side{s.link("a0.2-c1.1"), true}] = gone }, []string{"a0.2-c1.1"}, 80 * time.Millisecond},
		{"own core link, downwards only", "fat-tree:k=4", "h0.0.2", "h3.1.3",
			func(s *world) { s.faults[side{s.link("a0.2-c1.1"), false}] = gone }, []string{"a0.2-c1.1"}, 80 * time.Millisecond},
		{"own edge link", "fat-tree:k=4", "h0.0.2", "h3.1.3",
			func(s *world) { s.both(s.link("e0.0-a0.3"), gone) }, []string{"e0.0-a0.3"}, 160 * time.Millisecond},
		// One destination's word is good for itself, those of two racks for the pod,
		// and those of two hosts for their rack.
		{"core link of the destination's pod", "fat-tree:k=4", "h0.0.2", "h3.1.3",
			func(s *world) { s.both(s.link("a3.3-c2.2"), gone) }, []string{"h3.1.3 by c2.2"}, 80 * time.Millisecond},
		{"the same, downwards only", "fat-tree:k=4", "h0.0.2", "h3.1.3",
			func(s *world) { s.faults[side{s.link("a3.3-c2.2"), false}] = gone }, []string{"h3.1.3 by c2.2"}, 80 * time.Millisecond},
		{"the same, of two destinations of a rack", "fat-tree:k=4", "h0.0.2", "h3.1.3 h3.1.2",
			func(s *world) { s.both(s.link("a3.3-c2.2"), gone) }, []string{"h3.1.2 by c2.2", "h3.1.3 by c2.2"}, 120 * time.Millisecond},
		{"the same, of two racks", "fat-tree:k=4", "h0.0.2", "h3.1.3 h3.0.2",
			func(s *world) { s.both(s.link("a3.3-c2.2"), gone) }, []string{"a3.3-c2.2"}, 120 * time.Millisecond},
		{"edge link of the destination's rack", "fat-tree:k=4", "h0.0.2", "h3.1.3",
			func(s *world) { s.both(s.link("e3.1-a3.2"), gone) }, []string{"h3.1.3 by c1.1", "h3.1.3 by c1.2"}, 160 * time.Millisecond},
		{"edge link of two destinations' rack", "fat-tree:k=4", "h0.0.2", "h3.1.3 h3.1.2",
			func(s *world) { s.both(s.link("e3.1-a3.2"), gone) }, []string{"e3.1-a3.2"}, 160 * time.Millisecond},
		{"the other rack of the pod", "fat-tree:k=4", "h0.0.2", "h0.1.2",
			func(s *world) { s.both(s.link("e0.1-a0.3"), gone) }, []string{"h0.1.2 by a0.3"}, 80 * time.Millisecond},
		{"the other rack of the pod, two of it", "fat-tree:k=4", "h0.0.2", "h0.1.2 h0.1.3",
			func(s *world) { s.both(s.link("e0.1-a0.3"), gone) }, []string{"e0.1-a0.3"}, 120 * time.Millisecond},
		{"a core switch", "fat-tree:k=4", "h0.0.2", "h3.1.3",
			func(s *world) {
				for _, p := range s.topo.Ports(s.node("3.1")) {
					s.both(p.Link, gone)
				}
			}, []string{"a0.2-c1.2"}, 80 * time.Millisecond},
		{"a spine's link to the destination", "leaf-spine:leaves=4,spines=4,hosts=2", "h0.0.2", "h0.2.2",
			func(s *world) { s.both(s.link("e0.2-a0.1"), gone) }, []string{"h0.2.2 by a0.1"}, 80 * time.Millisecond},
		{"a spine's link to the host", "leaf-spine:leaves=4,spines=4,hosts=2", "h0.0.2", "h0.2.2",
			func(s *world) { s.both(s.link("e0.0-a0.3"), gone) }, []string{"e0.0-a0.3"}, 80 * time.Millisecond},
		{"VL2, own side", "vl2:d0=2,d1=4,d2=4", "h0.0.2", "h0.3.2",
			func(s *world) { s.both(s.link("a0.1-c1.2"), gone) }, []string{"a0.1-c1.2"}, 80 * time.Millisecond},
		{"VL2, the destination's side", "vl2:d0=2,d1=4,d2=4", "h0.0.2", "h0.3.2",
			func(s *world) { s.both(s.link("a0.2-c1.1"), gone) }, []string{"h0.3.2 by c1.1"}, 80 * time.Millisecond},
		{"own link lossy", "fat-tree:k=4", "h0.0.2", "h3.1.3",
			func(s *world) { s.both(s.link("a0.2-c1.1"), fault{loss: 0.16}) }, []string{"a0.2-c1.1"}, 10 * time.Second},
		{"far link lossy", "fat-tree:k=4", "h0.0.2", "h3.1.3",
			func(s *world) { s.both(s.link("a3.3-c2.2"), fault{loss: 0.16}) }, []string{"h3.1.3 by c2.2"}, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(fewer(10)) {
				s := newWorld(t, c.spec, seed)
				h := s.watch(s.node(c.src), Config{})
				for _, dst := range strings.Fields(c.dst) {
					s.keepActive(h, s.node(dst))
				}
				s.run(time.Second)
				if h.changes > 0 {
					t.Fatalf("seed %d: suspects %v while all is well", seed, names(h.topo))
				}
				c.fail(s)
				begin := s.now
				for s.now < begin+c.within && !slices.Equal(names(h.topo), c.want) {
					s.run(s.now + time.Millisecond)
				}
				if got := names(h.topo); !slices.Equal(got, c.want) {
					t.Fatalf("seed %d: after %v suspects %v, want %v", seed, s.now-begin, got, c.want)
				}
				s.run(s.now + 2*time.Second) // by then a switch that nothing reaches has lost its proof
				if got := names(h.topo); !slices.Equal(got, c.want) {
					t.Fatalf("seed %d: 2 s later suspects %v, want %v still", seed, got, c.want)
				}
				clear(s.faults)
				s.run(s.now + 5*time.Second)
				if got := names(h.topo); len(got) > 0 {
					t.Fatalf("seed %d: 5 s after the heal suspects %v", seed, got)
				}
			}
		})
	}
}

// uses reports whether a host has a link on a live path to another.
func (h *simHost) uses(l topology.LinkID, dst topology.NodeID) bool {
	set := h.topo.Paths(h.id, dst)
	return slices.ContainsFunc(set.Live, func(n int) bool { return slices.Contains(set.Path(n).Links, l) })
}

// detection returns how long it takes until a host avoids a link with a fault,
// once for each seed, in ascending order.
func detection(t testing.TB, spec, src, dst, link string, f fault, c Config, runs int, traffic float64) []time.Duration {
	var took []time.Duration
	for seed := range uint64(runs) {
		s := newWorld(t, spec, seed)
		h := s.watch(s.node(src), c)
		if traffic > 0 {
			s.talk(h, s.node(dst), traffic)
		} else {
			s.keepActive(h, s.node(dst))
		}
		s.run(time.Second + time.Duration(s.rng.IntN(1000))*time.Microsecond)
		l := s.link(link)
		s.both(l, f)
		begin := s.now
		for s.now < begin+20*time.Second && h.uses(l, s.node(dst)) {
			s.run(s.now + 500*time.Microsecond)
		}
		took = append(took, s.now-begin)
	}
	slices.Sort(took)
	return took
}

func TestWatcher_detectionTimes(t *testing.T) {
	inShort(t)
	for _, c := range []struct {
		name    string
		config  Config
		link    string
		loss    float64
		traffic float64
		max     time.Duration
	}{
		{"near, 20 ms", Config{}, "a0.2-c1.1", 1, 0, 80 * time.Millisecond},
		{"far, 20 ms", Config{}, "a3.2-c1.1", 1, 0, 80 * time.Millisecond},
		{"far, 10 ms", Config{Interval: 10 * time.Millisecond}, "a3.2-c1.1", 1, 0, 45 * time.Millisecond},
		{"far, 50 ms", Config{Interval: 50 * time.Millisecond}, "a3.2-c1.1", 1, 0, 200 * time.Millisecond},
		{"far, 100 probes/s", Config{Budget: 100}, "a3.2-c1.1", 1, 0, 3 * time.Second},
		{"far, traffic", Config{}, "a3.2-c1.1", 1, 4000, 80 * time.Millisecond},
		{"far, traffic, 100 probes/s", Config{Budget: 100}, "a3.2-c1.1", 1, 4000, 150 * time.Millisecond},
		{"far, traffic, no probes", Config{Budget: -1}, "a3.2-c1.1", 1, 4000, 150 * time.Millisecond},
		{"near, 30 % lost", Config{}, "a0.2-c1.1", 0.163, 0, 10 * time.Second},
		{"far, 30 % lost", Config{}, "a3.2-c1.1", 0.163, 0, 10 * time.Second},
		{"far, traffic, 30 % lost", Config{}, "a3.2-c1.1", 0.3, 4000, 10 * time.Second},
		{"near, traffic", Config{}, "a0.2-c1.1", 1, 4000, 80 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			took := detection(t, "fat-tree:k=4", "h0.0.2", "h3.1.3", c.link, fault{loss: c.loss}, c.config, 60**soak, c.traffic)
			n := len(took)
			t.Logf("%-28s median %v, p99 %v, max %v", c.name, took[n/2], took[n*99/100], took[n-1])
			if took[n-1] > c.max {
				t.Errorf("%v, more than %v", took[n-1], c.max)
			}
		})
	}
}

// fewer is how many times something is tried where the race detector makes it
// slow: a simulation has one goroutine, in which it finds nothing.
func fewer(n int) int {
	if testing.Short() {
		return max(1, n/5)
	}
	return n
}

// inShort skips what cannot be made less.
func inShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a long simulation, left out with -short")
	}
}
