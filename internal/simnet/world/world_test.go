package world

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/simnet"
	"weft/policy"
	"weft/stack"
)

func TestNew_mistakesComeOutOfRun(t *testing.T) {
	for _, c := range []struct {
		name     string
		config   Config
		scenario func(w *World)
		want     string
	}{
		{"topology", Config{Topology: "donut"}, func(*World) {}, `"donut"`},
		{"links", Config{Links: simnet.Config{RateBits: -1}}, func(*World) {}, "RateBits"},
		{"host", Config{}, func(w *World) { w.Flow("h9.9.9", "h0.0.2", 1) }, "h9.9.9"},
		{"switch", Config{}, func(w *World) { w.Flow("h0.0.2", "a0.4", 1) }, "a0.4 is not a host"},
		{"host's configuration", Config{Hosts: usePolicy("best")}, func(w *World) { w.Host("h0.0.2") }, "Config.Policy"},
		{"link", Config{}, func(w *World) { w.Cut("e0.0", "e0.1") }, "no link from e0.0 to e0.1"},
		{"impairment", Config{}, func(w *World) { w.Impair("e0.0", "a0.4", simnet.Impairment{Loss: 2}) }, "Loss"},
		{"trips", Config{}, func(w *World) { w.RoundTrips("h0.0.2", "h0.1.2", 1, 1e6, 0) }, "1000000 bytes"},
		{"other fabric", Config{}, func(w *World) { w.SetTopology(newWorld(t, Config{Topology: "fat-tree:k=4"}).Topology()) }, "fat-tree:k=4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.config)
			c.scenario(w)
			if err := w.Run(time.Second); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v does not mention %s", err, c.want)
			}
		})
	}
}

// lossy runs a flow over four paths that all lose packets.
func lossy(t *testing.T, seed uint64) *World {
	t.Helper()
	w := newWorld(t, Config{Seed: seed})
	for _, s := range spines {
		w.Impair(s, "e0.1", simnet.Impairment{Loss: 0.01})
	}
	w.Flow("h0.0.2", "h0.1.2", megabytes(10, 1))
	run(t, w, time.Minute)
	if w.Network().Stats().Dropped[simnet.Lost] == 0 {
		t.Fatal("nothing was lost")
	}
	return w
}

// crowd sends bytes among nine hosts (six where that takes too long), all to all, over paths that differ by more than the resequencer waits, while links
// fail.
func crowd(t *testing.T, policy string, seed uint64) *World {
	t.Helper()
	w := newWorld(t, Config{Seed: seed, Hosts: func(_ string, c *stack.Config) {
		c.Policy = policy
		c.Resequencer.Hold = 300 * time.Microsecond
	}})
	for edge := range 3 {
		for i, s := range spines {
			w.Impair(s, fmt.Sprintf("e0.%d", edge), simnet.Impairment{
				Delay: time.Duration(i) * 250 * time.Microsecond,
				Loss:  0.001, Duplicate: 0.001, Corrupt: 0.001,
			})
		}
	}
	size := 9
	if race {
		size = 6
	}
	var hosts []string
	for i := range size {
		hosts = append(hosts, fmt.Sprintf("h0.%d.%d", i%3, 2+i/3))
	}
	for i, from := range hosts {
		for j, to := range hosts {
			if i != j {
				w.FlowAt(time.Duration(i)*time.Millisecond, from, to, 64<<10)
			}
		}
		w.RoundTrips(from, hosts[(i+1)%size], 5, 1000, time.Millisecond)
	}
	w.At(5*time.Millisecond, func() {
		w.Cut("e0.0", spines[1])
		w.Cut("e0.2", spines[2])
	})
	w.At(6*time.Millisecond, func() {
		w.SetTopology(w.Topology().Without(w.Link("e0.0", spines[1]), w.Link("e0.2", spines[2])))
	})
	run(t, w, time.Minute)
	return w
}

func TestRun_sameSeedSamePackets(t *testing.T) {
	runs, crowds := 3, 1
	if race {
		runs = 1
	}
	type scenario struct {
		name string
		runs int
		run  func() *World
	}
	scenarios := []scenario{{"lossy", runs, func() *World { return lossy(t, 1) }}}
	policies := policy.Names()
	if race {
		policies = []string{"drb"}
	}
	for _, p := range policies {
		scenarios = append(scenarios, scenario{"crowd " + p, crowds, func() *World { return crowd(t, p, 1) }})
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			want := s.run()
			runtime.GOMAXPROCS(2)
			for i := range s.runs {
				if w := s.run(); w.Trace() != want.Trace() {
					t.Fatalf("run %d: trace %x of %d packets until %v, with one processor %x of %d until %v", i,
						w.Trace(), w.Packets(), w.Now(), want.Trace(), want.Packets(), want.Now())
				}
			}
		})
	}
}

func TestRun_otherSeedOtherPackets(t *testing.T) {
	if lossy(t, 1).Trace() == lossy(t, 2).Trace() {
		t.Error("the seed makes no difference")
	}
}

// A crowd must meet what it is there for, or the test of its trace says less
// than it seems to.
func TestRun_crowdMeetsEverything(t *testing.T) {
	if race {
		t.Skip("half a crowd does not")
	}
	w := crowd(t, "drb", 1)
	var late, repaired, bad uint64
	for _, h := range w.hosts {
		if h != nil {
			s := h.Stats()
			late += s.Resequencer.TimedOut
			repaired += s.TCP.Retransmits
			bad += s.Ingress.BadChecksum
		}
	}
	n := w.Network().Stats()
	if late == 0 || repaired == 0 || bad == 0 || n.Duplicated == 0 || n.Dropped[simnet.Lost] == 0 || n.Dropped[simnet.LinkDown] == 0 {
		t.Errorf("timed out %d, retransmitted %d, bad checksums %d, %+v", late, repaired, bad, n)
	}
}

func TestRun_corruptPacketsNeverReachTheApplication(t *testing.T) {
	w := newWorld(t, Config{Seed: 3})
	for _, s := range spines { // one link in each path: two flips can make up for each other
		w.Impair("e0.0", s, simnet.Impairment{Corrupt: 0.1})
		w.Impair("e0.1", s, simnet.Impairment{Corrupt: 0.1})
	}
	w.Flow("h0.0.2", "h0.1.2", megabytes(4, 1)) // which checks every byte
	run(t, w, time.Minute)
	s := w.Host("h0.1.2").Stats().Ingress
	n := w.Network().Stats()
	if s.BadChecksum == 0 || n.Dropped[simnet.Malformed] == 0 {
		t.Errorf("nothing was caught by the host (%+v) or the switches (%+v)", s, n)
	}
}

// What is corrupt on the last hop, the host must tell by itself.
func TestRun_corruptAtTheDoor(t *testing.T) {
	w := newWorld(t, Config{Seed: 4})
	w.Impair("e0.1", "h0.1.2", simnet.Impairment{Corrupt: 0.2})
	w.Flow("h0.0.2", "h0.1.2", 300_000)
	run(t, w, time.Minute)
	s, n := w.Host("h0.1.2").Stats().Ingress, w.Network().Stats()
	if got := s.Malformed + s.BadChecksum + s.NotForUs + s.Martian + s.Encapsulated; got != n.Corrupted || got == 0 {
		t.Errorf("%d of %d corrupt packets caught: %+v", got, n.Corrupted, s)
	}
}

func TestRun_duplicatesAreHarmless(t *testing.T) {
	w := newWorld(t, Config{Seed: 5})
	for _, s := range spines {
		w.Impair(s, "e0.1", simnet.Impairment{Duplicate: 0.05})
	}
	f := w.Flow("h0.0.2", "h0.1.2", megabytes(4, 1))
	run(t, w, time.Minute)
	if s := w.Host("h0.0.2").Stats().TCP; s.Timeouts > 0 {
		t.Errorf("timeouts: %+v", s)
	}
	if n := w.Network().Stats(); n.Duplicated == 0 {
		t.Errorf("no duplicates: %+v", n)
	}
	if f.Received != f.Bytes {
		t.Errorf("%d of %d bytes", f.Received, f.Bytes)
	}
}

func TestRun_survivesALinkThatGoesDown(t *testing.T) {
	w := newWorld(t, Config{Seed: 6})
	f := w.Flow("h0.0.2", "h0.1.2", megabytes(10, 4))
	w.At(2*time.Millisecond, func() { w.Cut("a0.5", "e0.1") })
	var before uint64
	w.At(3*time.Millisecond, func() {
		before = w.Network().Stats().Dropped[simnet.LinkDown]
		w.SetTopology(w.Topology().Without(w.Link("a0.5", "e0.1")))
	})
	run(t, w, time.Minute)
	n := w.Network().Stats()
	if before == 0 {
		t.Error("nothing was lost on the dead link")
	}
	// What was in the sender's uplink when it learnt of it is lost as well.
	if after := n.Dropped[simnet.LinkDown] - before; after > 200 {
		t.Errorf("%d packets took the dead link after it was known to be dead", after)
	}
	if f.End != 0 && f.End < 3*time.Millisecond {
		t.Errorf("the flow ended at %v, before the link failed", f.End)
	}
}

func TestRun_limit(t *testing.T) {
	w := newWorld(t, Config{Seed: 7})
	w.Flow("h0.0.2", "h0.1.2", 100<<20)
	err := w.Run(time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "h0.0.2 to h0.1.2") {
		t.Errorf("error %v", err)
	}
	if w.Now() != time.Millisecond {
		t.Errorf("now %v", w.Now())
	}
}

func TestRunUntil_lookAtEndlessFlows(t *testing.T) {
	w := newWorld(t, Config{Seed: 8, Hosts: usePolicy("ecmp")})
	f := w.Flow("h0.0.2", "h0.1.2", Endless)
	if err := w.Run(time.Second); err != nil || w.Now() != 0 {
		t.Fatalf("waits for what never ends: %v at %v", err, w.Now())
	}
	if err := w.RunUntil(10 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	first := f.Received
	if err := w.RunUntil(20 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if rate := float64(f.Received-first) * 8 / 0.01; rate < 1e9 || rate > 10e9 {
		t.Errorf("%.3g bit/s between 10 and 20 ms", rate)
	}
	if g := f.Goodput(); g < 1e9 || g > 10e9 {
		t.Errorf("goodput %.3g bit/s", g)
	}
	if w.Now() != 20*time.Millisecond {
		t.Errorf("now %v", w.Now())
	}
}

func TestFlow_failureEndsTheRun(t *testing.T) {
	w := newWorld(t, Config{Seed: 9})
	w.Host("h0.0.2") // starts with all paths live
	edge, _ := w.Topology().Lookup("e0.1")
	w.SetTopology(w.Topology().WithoutNode(edge.ID))
	w.Flow("h0.0.2", "h0.1.2", 1)
	if err := w.Run(10 * time.Minute); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("error %v", err)
	}
}

func TestRoundTrips_timeIsThatOfThePath(t *testing.T) {
	w := newWorld(t, Config{Seed: 10})
	r := w.RoundTripsAt(time.Second, "h0.0.2", "h0.1.2", 3, 100, time.Millisecond)
	run(t, w, time.Minute)
	if len(r.Times) != 3 || r.Start != time.Second {
		t.Fatalf("%+v", r)
	}
	// Four links each way at 5 µs, and 100 bytes with headers at 10 Gbit/s.
	for i, d := range r.Times[1:] {
		if d < 40*time.Microsecond || d > 42*time.Microsecond {
			t.Errorf("trip %d took %v", i+2, d)
		}
	}
	if first := r.Times[0]; first < 80*time.Microsecond || first > 84*time.Microsecond {
		t.Errorf("with the handshake, a trip took %v", first)
	}
	if want := r.Times[0] + r.Times[1] + r.Times[2] + 2*time.Millisecond; r.Time() != want {
		t.Errorf("in all %v, want %v", r.Time(), want)
	}
}

func TestClose_leavesNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	w := newWorld(t, Config{Seed: 11})
	w.Flow("h0.0.2", "h0.1.2", Endless)
	w.RunUntil(time.Millisecond)
	w.Close()
	w.Close()
	for range 1000 { // the last of them may be on its way out
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

func BenchmarkRun(b *testing.B) {
	const size = 50 << 20
	b.SetBytes(size)
	for b.Loop() {
		w := newWorld(b, Config{Seed: 1})
		w.Flow("h0.0.2", "h0.1.2", size)
		run(b, w, time.Minute)
		w.Close()
	}
}

// Requests begin no sooner than Every after each other, and no sooner than the answer.
func TestRoundTrips_every(t *testing.T) {
	w := newWorld(t, Config{Seed: 1})
	slow := w.RoundTrips("h0.0.2", "h0.1.2", 1000, 64, 0)
	slow.Every = 20 * time.Millisecond
	fast := w.RoundTrips("h0.0.2", "h0.1.2", 1000, 64, 0)
	fast.Every = time.Nanosecond
	if err := w.RunUntil(time.Second); err != nil {
		t.Fatal(err)
	}
	if n := len(slow.Times); n != 50 {
		t.Errorf("%d requests in a second, one every 20 ms", n)
	}
	if n := len(fast.Times); n != 1000 {
		t.Errorf("%d requests, of 1000 back to back", n)
	}
}
