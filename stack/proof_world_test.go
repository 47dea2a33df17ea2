package stack_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weft/internal/simnet"
	"weft/internal/simnet/world"
	"weft/internal/slowtest"
	"weft/stack"
	"weft/topology"
)

var allCores = []string{"c1.1", "c1.2", "c2.1", "c2.2"}

// goodput lets time pass and returns what a flow brought, in bit/s.
func goodput(t *testing.T, w *world.World, f *world.Flow, d time.Duration) float64 {
	t.Helper()
	before := f.Received
	until(t, w, w.Now()+d)
	return float64(f.Received-before) * 8 / d.Seconds()
}

func rackOf(w *world.World, host string) topology.NodeID {
	n, _ := w.Topology().Lookup(host)
	return w.Topology().Ports(n.ID)[0].Peer
}

// A fabric in which nobody decapsulates, or only half do, or only some time: what TCP
// gets is never nothing. As it was before, see stack.Liveness.Require.
func TestHost_failsOpen(t *testing.T) {
	inShort(t)
	for _, policy := range []string{"drb", "presto", "ecmp"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				name  string
				deaf  []string
				least float64 // part of linkRate
				plain bool
			}{
				{"all decapsulate", nil, 0.8, false},
				{"half decapsulate", allCores[1:3], 0.6, false},
				{"one decapsulates", allCores[1:], 0.4, false},
				{"nobody decapsulates", allCores, 0.6, true},
			} {
				w := watchful(t, 5, policy, stack.Liveness{})
				w.Deafen(c.deaf...)
				f := w.Flow("h0.0.2", "h3.0.2", world.Endless)
				until(t, w, 500*time.Millisecond)
				rate := goodput(t, w, f, time.Second)
				h := w.Host("h0.0.2")
				carriage, edge := h.Carriage(), rackOf(w, "h3.0.2")
				t.Logf("%s, %s: %.1f Mbit/s, %q", policy, c.name, rate/1e6, carriage.Why(edge))
				if rate < c.least*linkRate || carriage.Plain(edge) != c.plain {
					t.Errorf("%s, %s: %.1f Mbit/s, plain %v", policy, c.name, rate/1e6, carriage.Plain(edge))
				}
				if c.plain && !strings.Contains(carriage.Why(edge), "do not decapsulate") {
					t.Errorf("%s: the reason is %q", c.name, carriage.Why(edge))
				}
			}
		})
	}
}

// with the carrier required, it is a black hole, as it always was.
func TestHost_requiredIsABlackHole(t *testing.T) {
	inShort(t)
	w := watchful(t, 5, "drb", stack.Liveness{Require: true})
	w.Deafen(allCores...)
	f := w.Flow("h0.0.2", "h3.0.2", world.Endless)
	if rate := goodput(t, w, f, 2*time.Second); rate != 0 {
		t.Errorf("%.0f bit/s", rate)
	}
	if why := w.Host("h0.0.2").Carriage().Why(rackOf(w, "h3.0.2")); !strings.Contains(why, "required") {
		t.Errorf("%q", why)
	}
}

// Switches stop to decapsulate while connections live, and begin again; the
// connections go on.
func TestHost_connectionsLiveThroughLossOfProof(t *testing.T) {
	inShort(t)
	for _, policy := range []string{"drb", "presto", "letflow"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= few(3, 2); seed++ {
				w := watchful(t, seed, policy, stack.Liveness{})
				f := w.Flow("h0.0.2", "h3.0.2", world.Endless)
				edge := rackOf(w, "h3.0.2")
				plain := func() bool { return w.Host("h0.0.2").Carriage().Plain(edge) }
				until(t, w, 500*time.Millisecond)
				for range 2 {
					w.Deafen(allCores...)
					within(t, w, time.Second, "it is given up", plain)
					until(t, w, w.Now()+500*time.Millisecond) // TCP's timeout
					if rate := goodput(t, w, f, 500*time.Millisecond); rate < 0.6*linkRate {
						t.Errorf("%s, seed %d: %.1f Mbit/s while it is plain", policy, seed, rate/1e6)
					}
					w.Undeafen(allCores...)
					within(t, w, 10*time.Second, "it is taken up", func() bool { return !plain() })
					until(t, w, w.Now()+300*time.Millisecond)
					if rate := goodput(t, w, f, 500*time.Millisecond); rate < 0.6*linkRate {
						t.Errorf("%s, seed %d: %.1f Mbit/s when it is used again", policy, seed, rate/1e6)
					}
				}
			}
		})
	}
}

// A link of a smaller MTU that drops what is longer without a word: on all ways to the
// destination, packets get shorter; on few, those are left out.
func TestHost_findsTheMTU(t *testing.T) {
	inShort(t)
	hole := func(w *world.World, mtu int, pairs ...[2]string) {
		for _, p := range pairs {
			for _, d := range [][2]string{{p[0], p[1]}, {p[1], p[0]}} {
				w.Impair(d[0], d[1], simnet.Impairment{Loss: 1, LossAbove: mtu})
				if mtu == 0 {
					w.Impair(d[0], d[1], simnet.Impairment{})
				}
			}
		}
	}
	own := [][2]string{{"e0.0", "a0.2"}, {"e0.0", "a0.3"}}
	far := [][2]string{{"e3.0", "a3.2"}, {"e3.0", "a3.3"}}
	few := [][2]string{{"a0.2", "c1.1"}}
	for _, c := range []struct {
		name  string
		where [][2]string
		least float64
		mtu   int
	}{
		{"everywhere near", own, 0.6, 1380}, {"everywhere far", far, 0.6, 1380}, {"one path", few, 0.5, 1480},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, policy := range []string{"drb", "presto"} {
				for _, before := range []bool{true, false} {
					if slowtest.Small() && before != (policy == "drb") {
						continue // two of the four; CI runs all
					}
					what := fmt.Sprintf("%s, %s, before %v", c.name, policy, before)
					w := watchful(t, 7, policy, stack.Liveness{})
					edge := rackOf(w, "h3.0.2")
					if before {
						hole(w, 1400, c.where...)
					}
					f := w.Flow("h0.0.2", "h3.0.2", world.Endless)
					until(t, w, 500*time.Millisecond)
					if !before {
						hole(w, 1400, c.where...)
					}
					h := w.Host("h0.0.2")
					took := within(t, w, time.Second, what+": the MTU is found", func() bool {
						return h.Carriage().MTU(edge) == c.mtu && (c.mtu < 1480 || avoids(w, "h0.0.2", "h3.0.2", "3.0"))
					})
					until(t, w, w.Now()+time.Second) // TCP's timeout
					rate := goodput(t, w, f, time.Second)
					t.Logf("%s: found after %v, %.1f Mbit/s, %q", what, took, rate/1e6, h.Carriage().Why(edge))
					if rate < c.least*linkRate || h.Carriage().Plain(edge) {
						t.Errorf("%s: %.1f Mbit/s, plain %v, MTU %d", what, rate/1e6, h.Carriage().Plain(edge), h.Carriage().MTU(edge))
					}
					hole(w, 0, c.where...)
					within(t, w, 30*time.Second, what+": it is found that longer ones pass again", func() bool {
						return h.Carriage().MTU(edge) == 1480 && !avoids(w, "h0.0.2", "h3.0.2", "3.0")
					})
				}
			}
		})
	}
}

// Queues that overflow, and a peer without weft, do not have the carrier given up.
func TestHost_congestionIsNoLossOfProof(t *testing.T) {
	inShort(t)
	w := watchfulAt(t, busyRate, 9, "drb", stack.Liveness{})
	senders := []string{"h0.0.2", "h0.1.3", "h1.0.2", "h1.1.3", "h2.0.2", "h2.1.2", "h2.1.3"}
	for _, h := range senders {
		w.Flow(h, "h3.0.2", world.Endless)
		w.Flow("h3.0.2", h, world.Endless)
	}
	until(t, w, 300*time.Millisecond)
	for range 300 {
		until(t, w, w.Now()+10*time.Millisecond)
		for _, h := range senders {
			if c := w.Host(h).Carriage(); c.Plain(rackOf(w, "h3.0.2")) || c.MTU(rackOf(w, "h3.0.2")) != 1480 {
				t.Fatalf("at %v from %s: plain %v, MTU %d: %q", w.Now(), h, c.Plain(rackOf(w, "h3.0.2")), c.MTU(rackOf(w, "h3.0.2")), c.Why(rackOf(w, "h3.0.2")))
			}
		}
	}
	if n := w.Network().Stats().Dropped[simnet.QueueFull]; n == 0 {
		t.Error("no queue was full: the test tests nothing")
	}
}
