package stack

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/link"
	"weft/liveness"
	"weft/topology"
)

func TestNew_rejectsBadLiveness(t *testing.T) {
	near, _ := link.NewPair(1500, 1)
	good := Config{Address: addrA, Topology: fatTree, Device: near}
	for want, l := range map[string]Liveness{
		"Interval": {Interval: -1}, "Multiplier": {Multiplier: 99}, "Floor": {Floor: 2},
	} {
		c := good
		c.Liveness = &l
		if h, err := New(c); err == nil {
			h.Close()
			t.Errorf("%s is accepted", want)
		} else if s := err.Error(); !strings.Contains(s, "Config.Liveness") || !strings.Contains(s, want) {
			t.Errorf("%q does not name %s", s, want)
		}
	}
}

// Two Hosts in real time: boomerangs come home, requests are echoed, and a core
// that swallows everything is quit, of which a device that chooses paths is told.
func TestHost_watchesItsPaths(t *testing.T) {
	w := newWire(t)
	near := &choosingDevice{}
	watch := func(c *Config) { c.Liveness = &Liveness{} }
	a := newHost(t, w, addrA, watch, near.below)
	b := newHost(t, w, addrB, watch)
	transfer(t, a, b, 1_000_000)
	self, _, _ := fatTree.HostAt(addrA)
	eventually(t, "A hears of all", func() bool {
		paths, _ := a.Paths()
		home, echoed := 0, 0
		for _, p := range paths {
			if p.RTT > 0 && p.Dst == self {
				home++
			} else if p.RTT > 0 {
				echoed++
			}
		}
		return home >= 4 && echoed == 4
	})
	if s := b.Stats().Liveness; s.Echoed == 0 || s.Refused != 0 || s.Forged != 0 {
		t.Errorf("B: %+v", s)
	}
	dead := netip.MustParseAddr("10.4.1.1")
	w.mu.Lock()
	w.drop = func(s sighting) bool { return s.bounce == dead }
	w.mu.Unlock()
	avoids := func(top *topology.Topology) bool {
		set := top.Paths(0, 15)
		for _, n := range set.Live {
			if set.Addr(n) == dead {
				return false
			}
		}
		return true
	}
	eventually(t, "A quits the core", func() bool { return avoids(a.Topology()) })
	eventually(t, "the device is told", func() bool { top := near.told.Load(); return top != nil && avoids(top) })
	transfer(t, a, b, 1_000_000)
	w.mu.Lock()
	w.drop = nil
	w.mu.Unlock()
	eventually(t, "A uses the core again", func() bool { return !avoids(a.Topology()) && !avoids(near.told.Load()) })
	if s := a.Stats(); s.Liveness.Watcher.Quarantined+s.Liveness.Watcher.Unproved == 0 || s.Ingress.Probes == 0 || s.Liveness.Drops != 0 {
		t.Errorf("A: %+v", s.Liveness)
	}
	a.Close()
	if err := a.SetTopology(fatTree); err == nil {
		t.Error("SetTopology after Close")
	}
}

// request is a probe of B's for A, as it comes out of a bouncing switch.
func request(t testing.TB, path uint16, origin netip.Addr) []byte {
	t.Helper()
	b, err := encap.AppendProbe(nil, encap.Probe{Kind: encap.ProbeRequest, Path: path, Token: 5, Origin: origin, Target: addrA})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A reply takes the path of its request, dead or not, and there is a bound to
// how many.
func TestMonitor_echoesByTheSamePath(t *testing.T) {
	near, far := link.NewPair(1500, 4096)
	clock := &stillClock{}
	h, err := New(Config{Address: addrA, Topology: fatTree, Device: near, Simulation: Simulation{Seed: 1, Clock: clock}, Liveness: &Liveness{Budget: -1}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	core, _ := fatTree.Lookup("3.2")
	h.SetTopology(fatTree.WithoutNode(core.ID))
	bufs, sizes := [][]byte{make([]byte, 1500)}, []int{0}
	for path := range uint16(4) {
		h.Receive(request(t, path, addrB))
		if _, err := far.Read(bufs, sizes, 0); err != nil {
			t.Fatal(err)
		}
		out := bufs[0][:sizes[0]]
		via := netip.AddrFrom4([4]byte(out[16:20]))
		inner, err := encap.Decapsulate(out)
		if err != nil {
			t.Fatal(err)
		}
		p, err := encap.ParseProbe(inner)
		if want := fatTree.Paths(0, 15).Addr(int(path)); err != nil || via != want || p.Path != path || p.Kind != encap.ProbeReply || p.Token != 5 {
			t.Errorf("path %d: %+v, %v by %v, wanted is %v", path, p, err, via, want)
		}
	}
	for _, bad := range [][]byte{
		request(t, 4, addrB),                             // there are four paths
		request(t, 0xffff, addrB),                        //
		request(t, 0, netip.MustParseAddr("10.0.0.131")), // of the same rack
		request(t, 0, netip.MustParseAddr("10.4.1.1")),   // a switch
		request(t, 0, netip.MustParseAddr("192.0.2.1")),
	} {
		h.Receive(bad)
	}
	broken := request(t, 0, addrB)
	broken[40] ^= 1
	h.Receive(broken)
	if s := h.Stats(); s.Liveness.Echoed != 4 || s.Liveness.Refused != 5 || s.Liveness.Forged != 1 || s.Ingress.Probes != 10 || s.Ingress.Delivered != 0 {
		t.Errorf("%+v\n%+v", s.Liveness, s.Ingress)
	}
	for range 2 * maxEchoes {
		h.Receive(request(t, 0, addrB))
	}
	if s := h.Stats().Liveness; s.Echoed != maxEchoes {
		t.Errorf("%d are echoed at one time", s.Echoed)
	}
	clock.Time += time.Second / 2
	for range maxEchoes {
		h.Receive(request(t, 0, addrB))
	}
	if s := h.Stats().Liveness; s.Echoed != maxEchoes*3/2 {
		t.Errorf("%d are echoed half a second later", s.Echoed)
	}
}

// A peer that was taken for a plain host is tried as soon as it sends a probe.
func TestMonitor_hearsOfPeers(t *testing.T) {
	h, d, clock := samplingHost(t, func(c *Config) { c.Policy, c.Liveness = "drb", &Liveness{} })
	b, _, _ := fatTree.HostAt(addrB)
	// asked takes the probes off the tape that want an answer of B.
	asked := func() (n int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, packet := range d.packets {
			inner, _ := wayOf(t, packet)
			if p, err := encap.ParseProbe(inner); err == nil && p.Kind == encap.ProbeRequest && p.Target == addrB {
				n++
			}
		}
		d.packets = nil
		return n
	}
	muted := func() uint64 { return h.Stats().Liveness.Watcher.Muted }
	for quiet := 0; clock.Now() < 100*time.Second || quiet < 3; { // and nothing is due any more
		h.sendCell(t, 1)
		if clock.Run(100 * time.Millisecond); asked() > 0 {
			quiet = 0
		} else {
			quiet++
		}
	}
	if paths, _ := h.Paths(); muted() < 2 || !slices.ContainsFunc(paths, func(p liveness.PathHealth) bool { return p.Dst == b }) {
		t.Errorf("%d destinations are muted; %+v", muted(), paths)
	}
	h.Receive(request(t, 0, addrB))
	if clock.Run(time.Millisecond); asked() == 0 {
		t.Errorf("nothing is asked at once; %+v", h.Stats().Liveness)
	}
}

// A Host without Liveness leaves probes to whoever listens.
func TestHost_withoutLivenessProbesAreDatagrams(t *testing.T) {
	near, _ := link.NewPair(1500, 16)
	h, err := New(Config{Address: addrA, Topology: fatTree, Device: near, Simulation: Simulation{Seed: 1, Clock: &stillClock{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.Receive(request(t, 0, addrB))
	if s := h.Stats(); s.Ingress.Delivered != 1 || s.Ingress.Probes != 0 || s.Liveness != (LivenessStats{}) {
		t.Errorf("%+v", s)
	}
	if paths, _ := h.Paths(); paths != nil {
		t.Errorf("%v", paths)
	}
}

// Once SetTopology has returned, nothing goes by a path that is dead, whoever
// sends at the time.
func TestHost_closesTheHoleAtOnce(t *testing.T) {
	for _, name := range []string{"drb", "presto", "ecmp", "letflow"} {
		w := newWire(t)
		near := &holeDevice{}
		a := newHost(t, w, addrA, func(c *Config) {
			near.Memory = c.Device.(*link.Memory)
			c.Device, c.Policy = near, name
		})
		b := newHost(t, w, addrB, func(c *Config) { c.Policy = name })
		stop := make(chan struct{})
		var senders sync.WaitGroup
		for range 3 {
			c1, c2 := connect(t, a, b)
			senders.Go(func() {
				buf := make([]byte, 32<<10)
				for {
					if _, err := c1.Write(buf); err != nil {
						return
					}
				}
			})
			senders.Go(func() {
				buf := make([]byte, 32<<10)
				for {
					if _, err := c2.Read(buf); err != nil {
						return
					}
				}
			})
			senders.Go(func() { <-stop; c1.Close(); c2.Close() })
		}
		sent := func() int { return len(w.sightings(func(s sighting) bool { return s.bounce.IsValid() })) }
		for i := 0; i < rounds(60, 20) || sent() < 200; i++ {
			if i == 5000 {
				t.Fatalf("%s: only %d packets are sent at all", name, sent())
			}
			core, _ := fatTree.Lookup([]string{"3.0", "3.1", "3.2", "3.3"}[i%4])
			if err := a.SetTopology(fatTree.WithoutNode(core.ID)); err != nil {
				t.Fatal(err)
			}
			near.dead.Store(&core.Addr)
			time.Sleep(2 * time.Millisecond)
			near.dead.Store(nil)
			if err := a.SetTopology(fatTree); err != nil {
				t.Fatal(err)
			}
		}
		close(stop)
		senders.Wait()
		if n := near.fell.Load(); n > 0 {
			t.Errorf("%s: %d packets went into the hole", name, n)
		}
	}
}

// holeDevice counts what is sent to a bouncing switch that is dead.
type holeDevice struct {
	*link.Memory
	dead atomic.Pointer[netip.Addr]
	fell atomic.Int64
}

func (d *holeDevice) Write(bufs [][]byte, offset int) (int, error) {
	dead := d.dead.Load()
	for _, b := range bufs {
		if b = b[offset:]; dead != nil && b[9] == flowcell.ProtoIPIP && netip.AddrFrom4([4]byte(b[16:20])) == *dead {
			d.fell.Add(1)
		}
	}
	return d.Memory.Write(bufs, offset)
}
