package liveness

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"weft/encap"
	"weft/topology"
)

func TestWatcher_forgetsAndRefuses(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 6)
	h := s.watch(0, Config{MaxDestinations: 2})
	active := func(dst topology.NodeID) { h.w.Active(s.topo.Node(dst).Addr, s.topo.Node(dst).Addr, s.now) }
	active(15)
	active(14)
	active(1) // of the same rack
	active(13)
	if st := h.w.Stats(); st.Destinations != 2 || st.Refused != 1 || st.Evicted != 0 {
		t.Errorf("%+v", st)
	}
	s.settle(h)
	s.run(1500 * time.Millisecond)
	active(14)
	active(13)
	if st := h.w.Stats(); st.Destinations != 2 || st.Refused != 1 || st.Evicted != 1 || h.w.groups[s.topo.Node(15).Addr] != nil {
		t.Errorf("%+v", st)
	}
	// An idle destination is not probed.
	s.settle(h)
	s.run(4 * time.Second)
	was := h.w.Stats().Sent
	s.run(5 * time.Second)
	if n := h.w.Stats().Sent - was; n > 330 {
		t.Errorf("%d probes in a second, more than six boomerangs need", n)
	}
}

// Nobody who has not seen a probe can answer it.
func TestWatcher_ignoresForgeries(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 8)
	h := s.watch(0, Config{})
	l := s.link("a0.2-c1.1")
	s.both(l, fault{loss: 1})
	rng := rand.New(rand.NewPCG(1, 1))
	self := s.topo.Node(0).Addr
	for s.now < 500*time.Millisecond {
		s.run(s.now + time.Millisecond)
		for range 100 {
			b, err := encap.AppendProbe(nil, encap.Probe{Kind: encap.Boomerang, Token: rng.Uint64(), Origin: self, Target: self})
			if err != nil {
				t.Fatal(err)
			}
			h.w.Answer(b, s.now)
		}
	}
	if h.topo.Live(l) || h.w.Stats().Unknown != 50_000 {
		t.Errorf("%+v", h.w.Stats())
	}
}

func TestWatcher_allocatesNothing(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 9)
	h := s.watch(0, Config{})
	s.keepActive(h, 15)
	s.run(time.Second)
	now := s.now
	path := 0
	var packet []byte
	peer := s.topo.Node(15).Addr
	n := testing.AllocsPerRun(2000, func() {
		now += time.Millisecond
		h.w.Active(peer, peer, now)
		h.w.Sent(peer, path%4, 10)
		h.w.Lost(peer, path%4, 1, now)
		path++
		h.w.Tick(now)
		h.w.Probes(func(p *Probe) {
			packet = p.Append(packet[:0])
			if p.Kind() == encap.ProbeRequest {
				encap.ReplyProbe(packet)
			}
			h.w.Answer(packet, now)
		})
		h.w.Topology()
	})
	if n != 0 || h.w.Stats().Answered < 100 {
		t.Errorf("%v allocations, %+v", n, h.w.Stats())
	}
}

func FuzzAnswer(f *testing.F) {
	self := netip.MustParseAddr("10.0.0.2")
	b, err := encap.AppendProbe(nil, encap.Probe{Kind: encap.Boomerang, Token: 3, Origin: self, Target: self})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, 3, 4, int64(5))
	f.Fuzz(func(t *testing.T, packet []byte, path, n int, step int64) {
		s := newWorld(t, "fat-tree:k=4", 1)
		h := s.watch(0, Config{})
		s.keepActive(h, 15)
		s.run(10 * time.Millisecond)
		now := s.now + time.Duration(step)
		h.w.Answer(packet, now)
		peer := s.topo.Node(15).Addr
		h.w.Sent(peer, path, n)
		h.w.Lost(peer, path, n, now)
		h.w.Active(netip.AddrFrom4([4]byte{10, byte(path >> 16), byte(path >> 8), byte(path)}), self, now)
		h.w.Tick(now)
		if len(h.w.Topology().Down()) > 0 {
			t.Fatal("one packet killed a link")
		}
	})
}
