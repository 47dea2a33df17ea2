package liveness

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/encap"
	"weft/topology"
)

// awaitMTU lets time pass until a host believes in an MTU to another's rack.
func (s *world) awaitMTU(h *simHost, dst topology.NodeID, mtu int, limit time.Duration) time.Duration {
	s.t.Helper()
	for from := s.now; ; s.run(s.now + time.Millisecond) {
		if h.w.Carriage().MTU(s.edge(dst)) == mtu {
			return s.now - from
		}
		if s.now-from > limit {
			s.t.Fatalf("seed %d: MTU %d, not %d after %v: %q", s.seed, h.w.Carriage().MTU(s.edge(dst)), mtu, limit, h.w.Carriage().Why(s.edge(dst)))
		}
	}
}

// holes makes links of a smaller MTU of these.
func (s *world) holes(mtu int, links ...topology.LinkID) {
	for _, l := range links {
		s.both(l, fault{mtu: mtu})
	}
}

// On the own side or the other's, there from the start or later, under loss: within a
// second the longest that passes is found, and longer ones are used again when they
// pass again.
func TestSize_isFoundWithinASecond(t *testing.T) {
	for seed := range uint64(12) {
		s := newWorld(t, "fat-tree:k=4", seed)
		s.all.loss = []float64{0, 0.002, 0.005}[seed%3]
		self, dst, other := s.node("h0.0.2"), s.node("h3.1.3"), s.node("h2.0.2")
		where := []topology.LinkID{s.link("e0.0-a0.2"), s.link("e0.0-a0.3")}
		if seed%2 == 1 {
			where = []topology.LinkID{s.link("e3.1-a3.2"), s.link("e3.1-a3.3")}
		}
		mtu := []int{1450, 1400, 1283, 600, 576, 1499}[seed/2]
		want := 0
		h := s.watch(self, Config{MTU: 1500})
		for _, n := range h.w.sizes {
			if n <= mtu {
				want = n - encap.Overhead
				break
			}
		}
		early := seed%4 < 2 && want > 0
		if early {
			s.holes(mtu, where...)
		}
		s.keepActive(h, dst)
		s.keepActive(h, other)
		if !early {
			s.awaitMTU(h, dst, 1480, 200*time.Millisecond)
			s.run(s.now + 2*time.Second)
			s.holes(mtu, where...)
		}
		if want == 0 { // not even the shortest passes
			if seed%2 == 0 {
				s.awaitPlain(h, dst, true, 2*time.Second)
			}
			continue
		}
		took := s.awaitMTU(h, dst, want, 1200*time.Millisecond)
		if took > time.Second && s.all.loss == 0 {
			t.Errorf("seed %d: found after %v", seed, took)
		}
		s.run(s.now + time.Second)
		c := h.w.Carriage()
		if c.Plain(s.edge(dst)) || !strings.Contains(c.Why(s.edge(dst)), fmt.Sprint(want+encap.Overhead)) {
			t.Errorf("seed %d: plain %v, %q", seed, c.Plain(s.edge(dst)), c.Why(s.edge(dst)))
		}
		if seed%2 == 1 && c.MTU(s.edge(other)) != 1480 {
			t.Errorf("seed %d: to another pod the MTU is %d", seed, c.MTU(s.edge(other)))
		}
		clear(s.faults)
		s.awaitMTU(h, dst, 1480, 2*lastRaise)
		if st := h.w.Stats(); st.GivenUp > 0 {
			t.Errorf("seed %d: %+v", seed, st)
		}
	}
}

// Few paths of a smaller MTU are left out, many make all packets shorter; the floor
// says what is many.
func TestSize_fewAreAvoided(t *testing.T) {
	for n, cores := range []string{"", "c1.1", "c1.1 c2.1", "c1.1 c2.1 c2.2"} {
		s := newWorld(t, "fat-tree:k=4", uint64(n))
		dst := s.node("h3.1.3")
		h := s.watch(0, Config{MTU: 9000})
		s.keepActive(h, dst)
		s.run(time.Second)
		for _, core := range strings.Fields(cores) {
			for _, p := range s.topo.Ports(s.node(core)) {
				s.holes(1500, p.Link)
			}
		}
		s.run(s.now + 2*time.Second)
		mtu, used := h.w.Carriage().MTU(s.edge(dst)), len(h.topo.Paths(0, dst).Live)
		wantMTU, wantUsed := 8980, 4-n
		if n == 3 {
			wantMTU, wantUsed = 1480, 4
		}
		if mtu != wantMTU || used != wantUsed {
			t.Errorf("without %q: MTU %d by %d paths, want %d by %d: %q", cores, mtu, used, wantMTU, wantUsed, h.w.Carriage().Why(s.edge(dst)))
		}
	}
}

// A peer that does not know padding tells nothing of sizes; boomerangs still do.
func TestSize_oldPeers(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 2)
	s.old[15] = true
	h := s.watch(0, Config{MTU: 1500})
	s.keepActive(h, 15)
	s.run(3 * time.Second)
	for range 50 {
		s.run(s.now + 100*time.Millisecond)
		if c := h.w.Carriage(); c.Plain(s.edge(15)) || c.MTU(s.edge(15)) != 1480 || len(names(h.topo)) > 0 {
			t.Fatalf("plain %v, MTU %d, down %v: %q", c.Plain(s.edge(15)), c.MTU(s.edge(15)), names(h.topo), c.Why(s.edge(15)))
		}
	}
	s.holes(1400, s.topo.Ports(s.edge(0))[2].Link, s.topo.Ports(s.edge(0))[3].Link)
	s.awaitMTU(h, 15, 1380, time.Second)
}

// An ICMP error about a full-size probe is believed at once; one that quotes nothing
// that was sent is not.
func TestWatcher_tooBig(t *testing.T) {
	s := newWorld(t, "leaf-spine:leaves=2,spines=1,hosts=2", 1)
	h := s.watch(0, Config{MTU: 1500})
	s.keepActive(h, 3)
	s.run(2 * time.Second)
	var full []byte
	s.sent = func(_ *simHost, p *Probe) {
		if p.Kind() == encap.Boomerang && p.Len() > encap.ProbeLen {
			full = p.Append(nil)
		}
	}
	for full == nil {
		s.run(s.now + 100*time.Microsecond)
		if s.now > 4*time.Second {
			t.Fatal("no full-size boomerang is sent")
		}
	}
	router := netip.MustParseAddr("10.0.0.1")
	forged := append([]byte(nil), full...)
	forged[40] ^= 1 // its token
	h.w.TooBig(tooBig(router, forged, 1380), s.now)
	if h.w.Stats().TooBig != 0 || h.w.Carriage().MTU(s.edge(3)) != 1480 {
		t.Errorf("a forged error: %+v, MTU %d", h.w.Stats(), h.w.Carriage().MTU(s.edge(3)))
	}
	h.w.TooBig(tooBig(router, full, 1380), s.now)
	h.w.TooBig(nil, s.now)
	if st := h.w.Stats(); st.TooBig != 1 || st.Unknown != 2 || h.w.Carriage().MTU(s.edge(3)) != 1380 {
		t.Errorf("%+v, MTU %d", st, h.w.Carriage().MTU(s.edge(3)))
	}
}

// tooBig is a router's error about an inner packet.
func tooBig(router netip.Addr, packet []byte, mtu uint16) []byte {
	sum := func(b []byte) uint16 {
		s := uint32(0)
		for ; len(b) >= 2; b = b[2:] {
			s += uint32(binary.BigEndian.Uint16(b))
		}
		for s>>16 != 0 {
			s = s>>16 + s&0xffff
		}
		return ^uint16(s)
	}
	b := append(make([]byte, 28), packet[:548]...)
	from := router.As4()
	b[0], b[8], b[9], b[20], b[21] = 0x45, 64, 1, 3, 4
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	copy(b[12:], from[:])
	copy(b[16:], packet[12:16])
	binary.BigEndian.PutUint16(b[10:], sum(b[:20]))
	binary.BigEndian.PutUint16(b[26:], mtu)
	binary.BigEndian.PutUint16(b[22:], sum(b[20:]))
	return b
}

// What probing costs at the defaults, of which the report tells.
func TestSize_cost(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4", "leaf-spine:leaves=4,spines=4,hosts=2"} {
		for _, mtu := range []int{0, 1500} {
			for _, idle := range []bool{false, true} {
				for peers := range 3 {
					s := newWorld(t, spec, 1)
					h := s.watch(0, Config{MTU: mtu})
					h.w.SetIdle(idle, 0)
					for i := range peers {
						s.keepActive(h, topology.NodeID(s.topo.NumHosts()-1-2*i))
					}
					s.run(5 * time.Second)
					was := h.w.Stats()
					s.run(15 * time.Second)
					is := h.w.Stats()
					bytes, probes := float64(is.Bytes-was.Bytes)/10, float64(is.Sent+is.Full-was.Sent-was.Full)/10
					t.Logf("%s, MTU %d, idle %v, %d peers: %.0f bytes/s in %.0f probes/s", spec, mtu, idle, peers, bytes, probes)
					if limit := 600_000.0; bytes > limit || idle && bytes > 10_000 {
						t.Errorf("%s, MTU %d, idle %v, %d peers: %.0f bytes/s", spec, mtu, idle, peers, bytes)
					}
				}
			}
		}
	}
}
