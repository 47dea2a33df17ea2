package liveness

import (
	"slices"
	"strings"
	"testing"
	"time"

	"weft/topology"
)

// deafen has switches, by name, decapsulate no more, or again.
func (s *world) deafen(deaf bool, names ...string) {
	for _, name := range names {
		for _, a := range s.topo.BouncingAddrs(s.node(name)) {
			s.deaf[a] = deaf
		}
	}
}

// bouncers are the names of the bouncing switches of a pair.
func (s *world) bouncers(src, dst topology.NodeID) (names []string) {
	set := s.topo.Paths(src, dst)
	for n := range set.Count() {
		names = append(names, s.topo.Node(set.Bounce(n)).Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (s *world) edge(host topology.NodeID) topology.NodeID { return s.topo.EdgeOf(host) }

// awaitPlain lets time pass until a host has its packets to another go plain or not,
// and returns how long that took.
func (s *world) awaitPlain(h *simHost, dst topology.NodeID, plain bool, limit time.Duration) time.Duration {
	s.t.Helper()
	for from := s.now; ; s.run(s.now + time.Millisecond) {
		if h.w.Carriage().Plain(s.edge(dst)) == plain {
			return s.now - from
		}
		if s.now-from > limit {
			s.t.Fatalf("seed %d: plain is not %v after %v: %q", s.seed, plain, limit, h.w.Carriage().Why(s.edge(dst)))
		}
	}
}

var proofSpecs = []string{"fat-tree:k=4", "leaf-spine:leaves=4,spines=4,hosts=2", "vl2:d0=2,d1=4,d2=4"}

// At first all is plain; within a few rounds of probes what works is used, nothing of
// what does not, whatever part of the switches that is.
func TestProof_onlyProvedSwitchesAreUsed(t *testing.T) {
	for _, spec := range proofSpecs {
		for seed := range uint64(8) {
			s := newWorld(t, spec, seed)
			dst := topology.NodeID(s.topo.NumHosts() - 1)
			all := s.bouncers(0, dst)
			bad := all[:int(seed)%(len(all)+1)]
			s.deafen(true, bad...)
			h := s.watch(0, Config{})
			if !h.w.Carriage().Plain(s.edge(dst)) {
				t.Fatalf("%s, seed %d: at first it is not plain", spec, seed)
			}
			s.keepActive(h, dst)
			if len(bad) == len(all) {
				s.run(5 * time.Second)
				why := h.w.Carriage().Why(s.edge(dst))
				if !h.w.Carriage().Plain(s.edge(dst)) || !strings.Contains(why, "do not decapsulate IP-in-IP") || !strings.Contains(why, bad[0]) {
					t.Errorf("%s, seed %d: nothing comes home, but plain is %v: %q", spec, seed, h.w.Carriage().Plain(s.edge(dst)), why)
				}
				s.deafen(false, all...)
				s.awaitPlain(h, dst, false, 2*time.Second)
				continue
			}
			if took := s.awaitPlain(h, dst, false, 350*time.Millisecond); len(bad) == 0 && took > 50*time.Millisecond {
				t.Errorf("%s, seed %d: used after %v", spec, seed, took)
			}
			for end := s.now + 3*time.Second; s.now < end; s.run(s.now + 20*time.Millisecond) {
				set := h.topo.Paths(0, dst)
				if len(set.Live) == 0 || h.w.Carriage().Plain(s.edge(dst)) {
					t.Fatalf("%s, seed %d, at %v: nothing is used: %q", spec, seed, s.now, h.w.Carriage().Why(s.edge(dst)))
				}
				for _, n := range set.Live {
					if s.deaf[set.Addr(n)] {
						t.Fatalf("%s, seed %d, at %v: %v is used: %+v", spec, seed, s.now, set.Addr(n), h.w.Suspects())
					}
				}
			}
			if used := len(h.topo.Paths(0, dst).Live); used*len(all) != (len(all)-len(bad))*len(s.topo.Paths(0, dst).Live) {
				t.Errorf("%s, seed %d: %d paths are used without %v", spec, seed, used, bad)
			}
		}
	}
}

// When switches stop to decapsulate, all at once or one by one, the carrier is given
// up within a second and taken up again when they do, ever later if that goes on.
func TestProof_givenUpAndTakenUp(t *testing.T) {
	for _, spec := range proofSpecs {
		for seed := range uint64(4) {
			s := newWorld(t, spec, seed)
			s.all.loss = []float64{0, 0, 0.002, 0.01}[seed]
			dst := topology.NodeID(s.topo.NumHosts() - 1)
			h := s.watch(0, Config{})
			s.keepActive(h, dst)
			s.run(2 * time.Second)
			all := s.bouncers(0, dst)
			var last time.Duration
			for round := range 4 {
				for _, name := range all {
					s.deafen(true, name)
					if seed%2 == 1 {
						s.run(s.now + 30*time.Millisecond)
					}
				}
				if took := s.awaitPlain(h, dst, true, 900*time.Millisecond); took < 200*time.Millisecond && seed%2 == 0 {
					t.Errorf("%s, seed %d: given up after %v", spec, seed, took)
				}
				if why := h.w.Carriage().Why(s.edge(dst)); !strings.Contains(why, all[0]) || !strings.Contains(why, "protocol 4") {
					t.Errorf("%s, seed %d: %q", spec, seed, why)
				}
				s.run(s.now + time.Second)
				s.deafen(false, all...)
				last = s.awaitPlain(h, dst, false, 15*time.Second)
				if least := 500 * time.Millisecond << round; last < min(least, 5*time.Second) {
					t.Errorf("%s, seed %d: taken up again after %v, round %d", spec, seed, last, round)
				}
				s.run(s.now + 500*time.Millisecond)
			}
			if st := h.w.Stats(); st.GivenUp < 4 || st.TakenUp < 5 {
				t.Errorf("%s, seed %d: %+v", spec, seed, st)
			}
		}
	}
}

// What fails in one pod or rack leaves others alone.
func TestProof_perRack(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 3)
	self, near, far, other := s.node("h0.0.2"), s.node("h0.1.2"), s.node("h3.1.3"), s.node("h2.0.2")
	h := s.watch(self, Config{})
	for _, dst := range []topology.NodeID{near, far, other} {
		s.keepActive(h, dst)
	}
	s.run(time.Second)
	plain := func() (all [3]bool) {
		for i, dst := range []topology.NodeID{near, far, other} {
			all[i] = h.w.Carriage().Plain(s.edge(dst))
		}
		return all
	}
	// Aggregation switches bounce what stays in the pod.
	s.deafen(true, "c1.1", "c1.2") // two of four cores
	s.run(s.now + 2*time.Second)
	if plain() != [3]bool{} {
		t.Errorf("two cores of four are deaf: %v", plain())
	}
	s.deafen(true, "c2.1", "c2.2")
	s.run(s.now + time.Second)
	if plain() != [3]bool{false, true, true} {
		t.Errorf("all cores are deaf: %v", plain())
	}
	clear(s.deaf)
	s.awaitPlain(h, far, false, 5*time.Second)
	// One aggregation switch of the pod: what goes to the cores over it goes on.
	s.deafen(true, "a0.2")
	s.run(s.now + 2*time.Second)
	if plain() != [3]bool{} {
		t.Errorf("an aggregation switch is deaf: %v", plain())
	}
	if n, f := h.topo.Paths(self, near).Live, h.topo.Paths(self, far).Live; len(n) != 1 || len(f) != 4 {
		t.Errorf("an aggregation switch is deaf: in the pod %v are used, to others %v", n, f)
	}
	clear(s.deaf)
	s.run(s.now + 5*time.Second)
	if n := h.topo.Paths(self, near).Live; len(n) != 2 {
		t.Errorf("it is not any more: in the pod %v are used", n)
	}
	// All over which the switches reach a rack: its peers do not answer.
	for _, l := range []string{"e3.1-a3.2", "e3.1-a3.3"} {
		s.both(s.link(l), fault{loss: 1})
	}
	s.awaitPlain(h, far, true, 900*time.Millisecond)
	if plain() != [3]bool{false, true, false} {
		t.Errorf("a rack is cut off: %v", plain())
	}
	if why := h.w.Carriage().Why(s.edge(far)); !strings.Contains(why, "no request to 10.3.1.3 was answered") {
		t.Errorf("%q", why)
	}
	s.run(s.now + 3*time.Minute) // it does not take it for a rack of plain hosts
	if !plain()[1] {
		t.Error("it is used again though nothing has changed")
	}
	clear(s.faults)
	s.awaitPlain(h, far, false, 2*maxMute)
}

// Losses and queues do not have the carrier given up.
func TestProof_lossDoesNotFlap(t *testing.T) {
	for _, spec := range proofSpecs {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(10) {
				lossDoesNotFlap(t, spec, seed)
			}
		})
	}
}

func lossDoesNotFlap(t *testing.T, spec string, seed uint64) {
	s := newWorld(t, spec, seed)
	dst := topology.NodeID(s.topo.NumHosts() - 1)
	h := s.watch(0, Config{MTU: 1500})
	s.all.loss = float64(seed+1) / 200 // on every link: up to 5 %
	if seed == 7 {                     // total, again and again, for no longer than a full queue
		s.all.loss = 0
		down := side{s.topo.Ports(0)[0].Link, false}
		var burst func()
		burst = func() {
			s.faults[down] = fault{loss: 1}
			s.after(time.Duration(s.rng.IntN(200))*time.Millisecond, func() { delete(s.faults, down) })
			s.after(500*time.Millisecond, burst)
		}
		s.after(time.Second, burst)
	}
	s.talk(h, dst, 200)
	s.run(time.Second)
	for end := s.now + time.Duration(fewer(60)**soak)*time.Second; s.now < end; s.run(s.now + 100*time.Millisecond) {
		c := h.w.Carriage()
		if c.Plain(s.edge(dst)) || c.MTU(s.edge(dst)) != 1480 {
			t.Fatalf("%s, seed %d, at %v: plain %v, MTU %d: %q", spec, seed, s.now, c.Plain(s.edge(dst)), c.MTU(s.edge(dst)), c.Why(s.edge(dst)))
		}
	}
	if st := h.w.Stats(); st.GivenUp > 0 || st.FullAnswered == 0 {
		t.Errorf("%s, seed %d: %+v", spec, seed, st)
	}
}

// A process that was stopped draws no conclusions from the silence, and says so.
func TestProof_stoppedProcess(t *testing.T) {
	for seed := range uint64(5) {
		s := newWorld(t, "fat-tree:k=4", seed)
		dst := topology.NodeID(15)
		h := s.watch(0, Config{MTU: 1500})
		s.keepActive(h, dst)
		s.run(2 * time.Second)
		for range 5 {
			h.stopped = true
			s.run(s.now + time.Duration(1+s.rng.IntN(7))*time.Second)
			h.stopped = false
			s.settle(h)
			if seed%2 == 0 { // what has come in meanwhile is read
				for _, b := range h.waiting {
					s.answer(h, b)
				}
			}
			h.waiting = nil
			for range 50 {
				s.run(s.now + 10*time.Millisecond)
				if c := h.w.Carriage(); c.Plain(s.edge(dst)) || c.MTU(s.edge(dst)) != 1480 || len(names(h.topo)) > 0 {
					t.Fatalf("seed %d, at %v: plain %v, MTU %d, down %v: %q", seed, s.now, c.Plain(s.edge(dst)), c.MTU(s.edge(dst)), names(h.topo), c.Why(s.edge(dst)))
				}
			}
			s.run(s.now + time.Second)
		}
		if st := h.w.Stats(); st.Stalls != 5 || st.Stalled < 4*time.Second || st.GivenUp > 0 {
			t.Errorf("seed %d: %+v", seed, st)
		}
	}
}

// Without probes nothing can be proved, and all is used. A carrier that is required
// is used, too, but it is said that it does not work.
func TestProof_withoutProbesOrRequired(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 1)
	for name, c := range map[string]Config{"no probes": {Budget: -1, MTU: 1500}, "required": {Require: true}} {
		h := s.watch(0, c)
		s.deafen(true, "c1.1", "c1.2", "c2.1", "c2.2")
		s.keepActive(h, 15)
		s.run(s.now + 2*time.Second)
		carriage := h.w.Carriage()
		if carriage.Plain(s.edge(15)) {
			t.Errorf("%s: it is plain", name)
		}
		if why := carriage.Why(s.edge(15)); strings.Contains(why, "no boomerang has ever come home") != c.Require {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// A switch that has lost its proof needs several boomerangs in a row to have it again, and a
// missed one begins anew.
func TestProof_regainedInARow(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 1)
	h := s.watch(0, Config{})
	s.keepActive(h, topology.NodeID(s.topo.NumHosts()-1))
	s.run(2 * time.Second)
	w := h.w
	b, p := &w.proof.bounces[0], &w.near.paths[0]
	if !b.proved || !b.once {
		t.Fatalf("after 2 s: %+v", *b)
	}
	home := func(want bool) {
		t.Helper()
		w.cameHome(p, w.now)
		w.proof.due = w.now
		if w.prove(); b.proved != want {
			t.Errorf("proved %v after %d in a row", b.proved, b.homes)
		}
	}
	b.proved, b.homes = false, 0
	for range regained - 1 {
		home(false)
	}
	b.home = 0
	w.stayedOut(p, w.now)
	for range regained - 1 {
		home(false)
	}
	home(true)
}

// A group is quiet when so many of its probes are missed, and not before nothing has come
// home for the patience.
func TestProof_quiet(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 1)
	h := s.watch(0, Config{})
	s.run(2 * time.Second)
	if p := s.watch(1, Config{Interval: 200 * time.Millisecond}).w.patience(); p != time.Second {
		t.Errorf("probes every 200 ms, and the patience is %v", p)
	}
	w := h.w
	g := &w.near
	for _, c := range []struct {
		missed int
		ago    time.Duration
		want   bool
	}{
		{missedByAll - 1, time.Hour, false}, {missedByAll, w.patience(), true}, {missedByAll, w.patience() - 1, false}, {0, time.Hour, false},
	} {
		g.mute, g.silent = false, c.missed
		g.quiet = w.now - c.ago
		if got := w.quiet(g); got != c.want {
			t.Errorf("%d missed, none home since %v: quiet %v", c.missed, c.ago, got)
		}
	}
}

// watching is a Watcher of a fabric that is well, with two destinations in one rack.
func watching(t *testing.T) (w *Watcher, rack *rackProof) {
	s := newWorld(t, "fat-tree:k=4", 1)
	h := s.watch(0, Config{})
	dst := topology.NodeID(s.topo.NumHosts() - 1)
	s.keepActive(h, dst)
	s.keepActive(h, dst-1)
	s.run(2 * time.Second)
	if r := h.w.proof.racks[s.edge(dst)]; r != nil && len(r.groups) == 2 {
		return h.w, r
	}
	t.Fatal("no two destinations in a rack")
	return nil, nil
}

// proves has the proof looked at now.
func (w *Watcher) proves() {
	w.proof.due = w.now
	w.prove()
}

// Boomerangs come home in another order than they were sent, and are found missing late.
func TestProof_olderNewsIsNone(t *testing.T) {
	w, _ := watching(t)
	b, p := &w.proof.bounces[0], &w.near.paths[0]
	sent := w.now
	w.cameHome(p, sent)
	w.cameHome(p, sent-time.Millisecond)
	w.stayedOut(p, sent-time.Millisecond)
	if b.home != sent || b.missed != 0 {
		t.Errorf("home %v of %v, %d missed", b.home, sent, b.missed)
	}
	w.stayedOut(p, sent+time.Millisecond)
	if b.missed != 1 {
		t.Errorf("%d missed, want 1", b.missed)
	}
}

// What counts is how long boomerangs were sent in vain, not how long ago that began.
func TestProof_missedOverATime(t *testing.T) {
	w, _ := watching(t)
	b, p := &w.proof.bounces[0], &w.near.paths[0]
	b.home = 0
	begin := w.now
	for i := range missedInRow {
		w.stayedOut(p, begin+time.Duration(i))
	}
	w.now += time.Hour
	if w.proves(); !b.proved {
		t.Error("the proof is lost by boomerangs that were all sent at once")
	}
	w.stayedOut(p, begin+w.patience())
	if w.proves(); b.proved {
		t.Error("the proof is not lost")
	}
	for range regained {
		w.cameHome(p, w.now)
	}
	p.cause = lossy
	if w.proves(); b.proved {
		t.Error("a switch that loses packets has its proof again")
	}
	p.cause = fine
	if w.proves(); !b.proved {
		t.Error("the proof is not regained")
	}
}

// Where all boomerangs stay out at once all proof is lost, unless replies tell of a switch.
func TestProof_allAtOnce(t *testing.T) {
	for _, replies := range []bool{true, false} {
		w, _ := watching(t)
		w.near.silent, w.near.quiet = missedByAll, w.now-w.patience()
		for i := range w.proof.bounces {
			w.proof.bounces[i].home = 0
		}
		if replies {
			w.proof.bounces[1].home = w.now
		}
		if w.proves(); w.proof.bounces[0].proved != replies {
			t.Errorf("replies come home %v, and proved is %v", replies, w.proof.bounces[0].proved)
		}
	}
}

// A rack is given up when nobody there answers any more who did, not when one does not.
func TestProof_oneSilentPeer(t *testing.T) {
	w, r := watching(t)
	for i, g := range r.groups {
		g.answered, g.mute = w.now, false
		g.silent, g.quiet = missedByAll, w.now-w.patience()
		if w.proves(); r.gate.open != (i == 0) {
			t.Errorf("%d of 2 are silent, and the rack's gate is open: %v", i+1, r.gate.open)
		}
	}
}
