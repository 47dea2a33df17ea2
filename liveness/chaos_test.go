package liveness

import (
	"flag"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/topology"
)

// Simulations run this many times as long.
var soak = flag.Int("soak", 1, "how many times as long as usual simulations run")

// truth returns which paths of a pair work in both directions.
func (s *world) truth(src, dst topology.NodeID) (works []bool) {
	set := s.topo.Whole().Paths(src, dst)
	for n := range set.Count() {
		p := set.Path(n)
		ok := true
		for _, l := range p.Links {
			ok = ok && s.faults[side{l, true}].loss < 1 && s.faults[side{l, false}].loss < 1
		}
		works = append(works, ok)
	}
	return works
}

// verify compares what a host avoids with the truth: the dead paths, all of them
// but for those that the floor of some destination needs, and none if all are
// dead.
func (s *world) verify(t *testing.T, h *simHost, peer netip.Addr, active []netip.Addr) bool {
	dst := s.end(peer)
	works := s.truth(h.id, dst)
	if !slices.Contains(works, true) {
		return true // the floor is checked elsewhere
	}
	live := h.topo.PathsTo(h.id, peer).Live
	for n, ok := range works {
		used := slices.Contains(live, n)
		if ok && !used || !ok && used && !s.held(h, peer, n, active) {
			return false
		}
	}
	return true
}

// held reports whether a link of a path is suspected, but in use because
// otherwise too few paths would be left to an active destination.
func (s *world) held(h *simHost, peer netip.Addr, n int, active []netip.Addr) bool {
	dst := s.end(peer)
	path := s.topo.Whole().Paths(h.id, dst).Path(n)
	for _, c := range h.w.Suspects() {
		if c.Path >= 0 { // of one destination
			if !c.Held || c.Dst != peer || c.Path != n {
				continue
			}
			if left := len(h.topo.PathsTo(h.id, peer).Live) - 1; 2*left < len(h.w.base.Paths(h.id, dst).Live) {
				return true
			}
			s.t.Errorf("seed %d, at %v: path %d to %v is held in vain", s.seed, s.now, n, peer)
			continue
		}
		if !c.Held || !slices.Contains(path.Links, c.Link) {
			continue
		}
		without := h.topo.Without(c.Link)
		for _, a := range active {
			if 2*len(without.Paths(h.id, s.end(a)).Live) < s.proved(h, a) {
				return true
			}
		}
		for a := range s.ends() { // the floor is of every kind of pair
			if 2*len(without.Paths(h.id, a).Live) < len(h.w.base.Paths(h.id, a).Live) {
				return true
			}
		}
		s.t.Errorf("seed %d, at %v: %s is held for nobody's sake", s.seed, s.now, s.topo.LinkName(c.Link))
	}
	return false
}

// proved is how many of the baseline's live paths to a destination are by switches
// that are proved.
func (s *world) proved(h *simHost, peer netip.Addr) (n int) {
	for _, i := range h.w.base.Paths(h.id, s.end(peer)).Live {
		if !h.w.proof.avoids(h.w.groups[peer].paths[i].up) {
			n++
		}
	}
	return n
}

// checkFloor fails if less than half of the paths to an active destination that
// the baseline has live, and that are proved, is left. While none is proved, packets go
// plain, whatever paths there are.
func (s *world) checkFloor(t *testing.T, h *simHost, active []netip.Addr) {
	for _, peer := range active {
		base := s.proved(h, peer)
		if left := len(h.topo.PathsTo(h.id, peer).Live); 2*left < base && !h.w.Carriage().Plain(s.rack(peer)) {
			t.Fatalf("seed %d, at %v: %d of %d paths left to %v: %+v", s.seed, s.now, left, base, peer, h.w.Suspects())
		}
	}
}

// Random links die, one way or both, and are mended. Some time after, each host
// avoids exactly what is dead; the floor holds always.
func TestWatcher_avoidsWhatIsDead(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4", "fat-tree:k=6", "leaf-spine:leaves=4,spines=4,hosts=2", "vl2:d0=2,d1=4,d2=4"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(2) {
				s := newWorld(t, spec, seed)
				const self = topology.NodeID(0)
				var active []netip.Addr
				for len(active) < 3 {
					dst := topology.NodeID(s.rng.IntN(s.topo.NumHosts()))
					if a := s.topo.Node(dst).Addr; !s.topo.Paths(self, dst).Direct() && !slices.Contains(active, a) {
						active = append(active, a)
					}
				}
				chaos(t, s, active, fewer(40)**soak)
			}
		})
	}
}

// chaos has links to some peers of the first host die and be mended in some rounds.
func chaos(t *testing.T, s *world, active []netip.Addr, rounds int) {
	s.check = func(h *simHost, _ *topology.Topology) { s.checkFloor(t, h, active) }
	h := s.watch(0, Config{MaxHold: time.Second})
	for _, a := range active {
		s.keepTalking(h, a)
	}
	s.run(time.Second)
	for round := range rounds {
		chaosRound(t, s, h, active, round)
	}
}

func chaosRound(t *testing.T, s *world, h *simHost, active []netip.Addr, round int) {
	relevant := relevantLinks(s, h.id, active)
	for range 1 + s.rng.IntN(3) {
		l := relevant[s.rng.IntN(len(relevant))]
		switch s.rng.IntN(3) {
		case 0:
			s.faults[side{l, true}] = fault{loss: 1}
		case 1:
			s.faults[side{l, false}] = fault{loss: 1}
		default:
			s.both(l, fault{loss: 1})
		}
		s.run(s.now + time.Duration(s.rng.IntN(300))*time.Millisecond)
	}
	wait := func(what string) {
		for end := s.now + 8*time.Second; ; s.run(s.now + 50*time.Millisecond) {
			all := true
			for _, a := range active {
				all = all && s.verify(t, h, a, active)
			}
			if all {
				return
			}
			if s.now > end {
				for _, a := range active {
					t.Logf("%v: works %v, uses %v", a, s.truth(h.id, s.end(a)), h.topo.PathsTo(h.id, a).Live)
				}
				var broken []string
				for k, f := range s.faults {
					if f.loss == 1 {
						broken = append(broken, s.topo.LinkName(k.link))
					}
				}
				t.Fatalf("seed %d, round %d, %v: broken are %v, suspected %+v", s.seed, round, what, broken, h.w.Suspects())
			}
		}
	}
	wait("after failures")
	s.run(s.now + time.Duration(s.rng.IntN(1000))*time.Millisecond)
	clear(s.faults)
	wait("after the heal")
}

// relevantLinks are those of any path of the host's.
func relevantLinks(s *world, self topology.NodeID, active []netip.Addr) (links []topology.LinkID) {
	for l := range topology.LinkID(s.topo.NumLinks()) {
		for _, a := range active {
			if s.topo.OnPaths(l, self, s.end(a)) {
				links = append(links, l)
				break
			}
		}
	}
	return links
}
