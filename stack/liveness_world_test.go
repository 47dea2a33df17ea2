package stack_test

import (
	"testing"
	"time"

	"weft/internal/simnet"
	"weft/internal/simnet/world"
	"weft/internal/slowtest"
	"weft/stack"
)

// linkRate is that of the links of a watchful fabric, in bit/s: so slow that seconds are not
// too much to simulate. What probes take of it is still little.
const linkRate = 25e6

// busyRate is that of links where what data alone tells counts.
const busyRate = 100e6

// watchful is a fabric whose hosts watch their paths.
func watchful(t *testing.T, seed uint64, policy string, l stack.Liveness) *world.World {
	t.Helper()
	return watchfulAt(t, linkRate, seed, policy, l)
}

// watchfulAt is one with links of a rate in bit/s.
func watchfulAt(t *testing.T, rate int64, seed uint64, policy string, l stack.Liveness) *world.World {
	t.Helper()
	w := world.New(world.Config{
		Topology: "fat-tree:k=4", Seed: seed,
		Links: simnet.Config{RateBits: rate, Delay: 5 * time.Microsecond, HostQueueBytes: int(6 * rate / 8000)},
		Hosts: func(_ string, c *stack.Config) { c.Policy, c.Liveness = policy, &l },
	})
	t.Cleanup(w.Close)
	return w
}

func until(t *testing.T, w *world.World, at time.Duration) {
	t.Helper()
	if err := w.RunUntil(at); err != nil {
		t.Fatal(err)
	}
}

// within lets time pass until ok, or fails.
func within(t *testing.T, w *world.World, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	from := w.Now()
	for !ok() {
		if w.Now()-from > limit {
			t.Fatalf("not after %v: %s", limit, what)
		}
		until(t, w, w.Now()+time.Millisecond)
	}
	return w.Now() - from
}

// avoids reports whether a host has no path by a core to another.
func avoids(w *world.World, from, to, core string) bool {
	h := w.Host(from)
	top := h.Topology()
	src, _ := top.Lookup(from)
	dst, _ := top.Lookup(to)
	via, _ := top.Lookup(core)
	set := top.Paths(src.ID, dst.ID)
	for _, n := range set.Live {
		if set.Bounce(n) == via.ID {
			return false
		}
	}
	return true
}

func whole(w *world.World, host string) bool { return len(w.Host(host).Topology().Down()) == 0 }

// Nobody says that a core is dead; whoever sends through it finds out, and uses
// it again when it is back.
func TestHost_quitsASilentlyDeadCore(t *testing.T) {
	inShort(t)
	for _, policy := range []string{"drb", "presto", "ecmp"} {
		for seed := uint64(1); seed <= 3; seed++ {
			w := watchful(t, seed, policy, stack.Liveness{})
			f := w.Flow("h0.0.2", "h3.0.2", world.Endless)
			until(t, w, 300*time.Millisecond)
			if !whole(w, "h0.0.2") || !whole(w, "h3.0.2") || f.Received == 0 {
				t.Fatalf("%s, seed %d: before anything fails %v is out of use", policy, seed, w.Host("h0.0.2").Topology().Down())
			}
			w.Fail("c1.1")
			took := within(t, w, 100*time.Millisecond, "the host quits 3.0", func() bool { return avoids(w, "h0.0.2", "h3.0.2", "3.0") })
			t.Logf("%s, seed %d: %v", policy, seed, took)
			within(t, w, 100*time.Millisecond, "the other quits 3.0", func() bool { return avoids(w, "h3.0.2", "h0.0.2", "3.0") })
			for _, other := range []string{"3.1", "3.2", "3.3"} {
				if avoids(w, "h0.0.2", "h3.0.2", other) {
					t.Errorf("%s, seed %d: %s is out of use, too", policy, seed, other)
				}
			}
			before := f.Received
			until(t, w, w.Now()+500*time.Millisecond)
			if rate := float64(f.Received-before) * 8 / 0.5; rate < 0.6*linkRate {
				t.Errorf("%s, seed %d: %.0f bit/s without the core", policy, seed, rate)
			}
			w.Heal("c1.1")
			within(t, w, 3*time.Second, "the core is used again", func() bool { return whole(w, "h0.0.2") && whole(w, "h3.0.2") })
		}
	}
}

// A link of the other pod: the way up is fine, which only the peer's echoes can
// tell from a dead core. Pairs of other pods keep the core.
func TestHost_quitsADeadWayDownForThatPodOnly(t *testing.T) {
	inShort(t)
	w := watchful(t, 5, "drb", stack.Liveness{})
	w.Flow("h0.0.2", "h3.0.2", world.Endless)
	w.Flow("h0.0.2", "h2.0.2", world.Endless)
	until(t, w, 300*time.Millisecond)
	w.Cut("c1.1", "a3.2")
	within(t, w, 100*time.Millisecond, "the host quits 3.0 to pod 3", func() bool { return avoids(w, "h0.0.2", "h3.0.2", "3.0") })
	until(t, w, w.Now()+300*time.Millisecond)
	if avoids(w, "h0.0.2", "h2.0.2", "3.0") {
		t.Error("the core is out of use to pod 2, too")
	}
	w.Mend("c1.1", "a3.2")
	within(t, w, 3*time.Second, "all is used again", func() bool { return whole(w, "h0.0.2") })
}

// with no probes at all, TCP's retransmissions tell.
func TestHost_lossAloneIsEvidence(t *testing.T) {
	inShort(t)
	for _, policy := range []string{"drb", "presto"} {
		for seed := uint64(1); seed <= few(8, 4); seed++ {
			w := watchfulAt(t, busyRate, seed, policy, stack.Liveness{Budget: -1})
			for range 4 {
				w.Flow("h0.0.2", "h3.0.2", world.Endless)
			}
			until(t, w, 300*time.Millisecond)
			w.Fail("c1.1")
			took := within(t, w, time.Second, "the host quits 3.0", func() bool { return avoids(w, "h0.0.2", "h3.0.2", "3.0") })
			s := w.Host("h0.0.2").Stats().Liveness
			t.Logf("%s, seed %d: %v, %+v", policy, seed, took, s.Evidence)
			if s.Watcher.Sent != 0 || s.Evidence.Losses == 0 {
				t.Errorf("%s, seed %d: %+v", policy, seed, s)
			}
		}
	}
}

// Queues overflow where many send to one; that says nothing of paths.
func TestHost_congestionIsNoEvidence(t *testing.T) {
	inShort(t)
	for _, budget := range []float64{0, -1} {
		w := watchfulAt(t, busyRate, 9, "drb", stack.Liveness{Budget: budget})
		senders := []string{"h0.0.2", "h0.1.3", "h1.0.2", "h1.1.3", "h2.0.2", "h2.1.2", "h2.1.3", "h3.1.3"}
		for _, h := range senders {
			w.Flow(h, "h3.0.2", world.Endless)
		}
		for i := range 200 {
			until(t, w, time.Duration(i)*10*time.Millisecond)
			for _, h := range append(senders, "h3.0.2") {
				if !whole(w, h) {
					t.Fatalf("budget %v: at %v %s does without %v", budget, w.Now(), h, names(w, h))
				}
			}
		}
		if n := w.Network().Stats().Dropped[simnet.QueueFull]; n == 0 {
			t.Error("no queue was full: the test tests nothing")
		}
	}
}

func names(w *world.World, host string) (list []string) {
	top := w.Host(host).Topology()
	for _, l := range top.Down() {
		k := top.Link(l)
		list = append(list, top.Node(k.A).Name+"-"+top.Node(k.B).Name)
	}
	return list
}

// Updates and own evidence add up.
func TestHost_updatesAndEvidenceAddUp(t *testing.T) {
	inShort(t)
	w := watchful(t, 6, "drb", stack.Liveness{})
	w.Flow("h0.0.2", "h3.0.2", world.Endless)
	until(t, w, 200*time.Millisecond)
	w.Fail("c1.1")
	within(t, w, 100*time.Millisecond, "the host quits 3.0", func() bool { return avoids(w, "h0.0.2", "h3.0.2", "3.0") })
	second, _ := w.Topology().Lookup("3.1")
	w.SetHosts(w.Topology().WithoutNode(second.ID), "h0.0.2")
	if !avoids(w, "h0.0.2", "h3.0.2", "3.0") || !avoids(w, "h0.0.2", "h3.0.2", "3.1") {
		t.Errorf("after an update %v is out of use", names(w, "h0.0.2"))
	}
	w.SetHosts(w.Topology(), "h0.0.2")
	if !avoids(w, "h0.0.2", "h3.0.2", "3.0") || avoids(w, "h0.0.2", "h3.0.2", "3.1") {
		t.Errorf("after another %v is out of use", names(w, "h0.0.2"))
	}
}

// The same seed gives the same packets, probes included.
func TestHost_livenessIsDeterministic(t *testing.T) {
	inShort(t)
	play := func() (uint64, uint64) {
		w := watchful(t, 12, "presto", stack.Liveness{})
		w.Flow("h0.0.2", "h3.0.2", world.Endless)
		w.Flow("h1.0.2", "h3.0.3", world.Endless)
		w.At(100*time.Millisecond, func() { w.Fail("c1.1") })
		until(t, w, 300*time.Millisecond)
		return w.Trace(), w.Packets()
	}
	sum, n := play()
	if again, m := play(); again != sum || m != n {
		t.Errorf("%x over %d packets, then %x over %d", sum, n, again, m)
	}
}

// few is how many seeds there are, and how many in an ordinary run.
func few(all, ordinary uint64) uint64 {
	if slowtest.Small() {
		return ordinary
	}
	return all
}

// inShort skips a world that takes too long under the race detector.
func inShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes too long under the race detector")
	}
}
