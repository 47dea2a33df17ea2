package liveness

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/dataplane/dataplanetest"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/graphtest"
	"weft/topology/graph/operator"
)

// newView is newWorld for a fabric with an operator's addresses as its first host sees it
// at its address of a family. It returns a host of each other rack.
func newView(t testing.TB, spec string, seed uint64, six bool) (s *world, peers []netip.Addr) {
	t.Helper()
	computed, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(operator.Spec(computed, seed))
	if err != nil {
		t.Fatal(err)
	}
	of := func(id graph.NodeID) netip.Addr {
		all := g.Node(id).Addresses
		return all[slices.IndexFunc(all, func(a netip.Addr) bool { return a.Is6() == six })]
	}
	topo, err := topology.FromGraph(g, of(0))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[topology.NodeID]bool{topo.EdgeOf(0): true}
	for id := range graph.NodeID(g.NumHosts()) {
		if _, rack, _ := topo.HostAt(of(id)); !seen[rack] {
			seen[rack] = true
			peers = append(peers, of(id))
		}
	}
	return worldOf(t, topo, seed), peers
}

// end is a host, or the rack of one where the fabric is data: it has no other hosts than
// this one.
func (s *world) end(host netip.Addr) topology.NodeID {
	if s.topo.Computed() {
		id, _ := s.topo.ByAddr(host)
		return id
	}
	return s.rack(host)
}

// rack is that of a host.
func (s *world) rack(host netip.Addr) topology.NodeID {
	_, rack, _ := s.topo.HostAt(host)
	return rack
}

// ends are all that end returns.
func (s *world) ends() iter.Seq[topology.NodeID] {
	if !s.topo.Computed() {
		return s.topo.Racks()
	}
	return func(yield func(topology.NodeID) bool) {
		for id := range topology.NodeID(s.topo.NumHosts()) {
			if !yield(id) {
				return
			}
		}
	}
}

// back is the way of an answer. Where the fabric is data, the topology has only ways that
// begin at this host.
func (s *world) back(from, to topology.NodeID, path int) route {
	if s.topo.Computed() {
		return s.route(from, to, path)
	}
	r := slices.Clone(s.route(to, from, path))
	slices.Reverse(r)
	for i := range r {
		r[i].up = !r[i].up
	}
	return r
}

// keepTalking has a host believe in traffic to an address.
func (s *world) keepTalking(h *simHost, peer netip.Addr) {
	h.w.Active(peer, peer, s.now)
	s.settle(h)
	s.after(300*time.Millisecond, func() { s.keepTalking(h, peer) })
}

// eachFamily runs a test in a fabric that is data, over IPv4 and over IPv6. longest is what
// an inner packet may have where all links take 1500 bytes.
func eachFamily(t *testing.T, f func(t *testing.T, s *world, peers []netip.Addr, longest int)) {
	for _, six := range []bool{false, true} {
		t.Run(map[bool]string{false: "IPv4", true: "IPv6"}[six], func(t *testing.T) {
			for seed := range uint64(fewer(10)) {
				s, peers := newView(t, "leaf-spine:leaves=3,spines=4,hosts=2", seed, six)
				longest := 1480
				if six {
					longest = 1460
				}
				f(t, s, peers, longest)
			}
		})
	}
}

// Over either family the carrier is proved, dead links are found, the own and others', and
// come back, and a switch that does not decapsulate carries nothing.
func TestView_findsDeadPaths(t *testing.T) {
	eachFamily(t, func(t *testing.T, s *world, peers []netip.Addr, longest int) {
		h := s.watch(0, Config{MTU: 1500})
		s.sent = func(_ *simHost, p *Probe) {
			b, err := encap.ParseProbe(p.Append(nil))
			if err != nil || b.Origin != s.topo.Node(0).Addr || b.Target.Is6() != b.Origin.Is6() ||
				b.Kind == encap.ProbeRequest && b.Via != p.Via {
				t.Fatalf("seed %d: %+v, %v", s.seed, b, err)
			}
		}
		for _, p := range peers {
			s.keepTalking(h, p)
		}
		s.run(time.Second)
		for _, p := range peers {
			if c := h.w.Carriage(); c.Plain(s.end(p)) || c.MTU(s.end(p)) != longest || c.Why(s.end(p)) != "" || len(names(h.topo)) > 0 {
				t.Fatalf("seed %d: plain %v, MTU %d, %q, out of use %v", s.seed, c.Plain(s.end(p)), c.MTU(s.end(p)), c.Why(s.end(p)), names(h.topo))
			}
		}
		for _, c := range []struct {
			link string
			want string
		}{
			{"leaf1-spine2", "leaf1-spine2"},
			{"leaf2-spine3", fmt.Sprintf("%v by spine3", peers[0])},
		} {
			s.both(s.link(c.link), fault{loss: 1})
			for end := s.now + 100*time.Millisecond; s.now < end && !slices.Equal(names(h.topo), []string{c.want}); {
				s.run(s.now + time.Millisecond)
			}
			if got := names(h.topo); !slices.Equal(got, []string{c.want}) {
				t.Fatalf("seed %d: without %s suspects %v, want %s: %+v", s.seed, c.link, got, c.want, h.w.Stats())
			}
			clear(s.faults)
			s.run(s.now + 5*time.Second)
			if got := names(h.topo); len(got) > 0 {
				t.Fatalf("seed %d: 5 s after the heal suspects %v", s.seed, got)
			}
		}
		for n := range s.topo.Nodes() {
			if n.Layer != topology.LayerHost && n.Layer != topology.LayerEdge {
				s.deaf[n.Addr] = true
			}
		}
		s.run(s.now + time.Second)
		protocol := map[bool]string{false: "protocol 4,", true: "protocol 41,"}[peers[0].Is6()]
		for _, p := range peers {
			if c := h.w.Carriage(); !c.Plain(s.end(p)) || !strings.Contains(c.Why(s.end(p)), protocol) {
				t.Errorf("seed %d: nobody decapsulates, but plain %v, %q", s.seed, c.Plain(s.end(p)), c.Why(s.end(p)))
			}
		}
	})
}

// A link of a smaller MTU whose errors are lost is found, and packets are as long as fits.
// Below what every host must take nothing is carried.
func TestView_findsBlackHoles(t *testing.T) {
	eachFamily(t, func(t *testing.T, s *world, peers []netip.Addr, longest int) {
		h := s.watch(0, Config{MTU: 1500})
		overhead := 1500 - longest
		for _, p := range peers {
			s.keepTalking(h, p)
		}
		s.run(time.Second)
		for _, n := range []string{"spine1", "spine2", "spine3", "spine4"} {
			s.holes(1430, s.link("leaf2-"+n))
		}
		s.awaitMTUTo(h, peers[0], 1420-overhead, 1200*time.Millisecond)
		if mtu := h.w.Carriage().MTU(s.end(peers[1])); mtu != longest {
			t.Errorf("seed %d: to another rack the MTU is %d", s.seed, mtu)
		}
		clear(s.faults)
		s.awaitMTUTo(h, peers[0], longest, 2*lastRaise)
		least := leastInner
		if peers[0].Is6() {
			least = leastInner6
		}
		for _, n := range []string{"spine1", "spine2", "spine3", "spine4"} {
			s.holes(least+overhead, s.link("leaf1-"+n))
		}
		s.awaitMTUTo(h, peers[0], least, 2*time.Second)
		for _, n := range []string{"spine1", "spine2", "spine3", "spine4"} {
			s.holes(least+overhead-1, s.link("leaf1-"+n))
		}
		s.run(s.now + 2*time.Second)
		if c := h.w.Carriage(); !c.Plain(s.end(peers[0])) {
			t.Errorf("seed %d: packets of %d bytes do not pass, but are carried: %q", s.seed, least, c.Why(s.end(peers[0])))
		}
	})
}

func (s *world) awaitMTUTo(h *simHost, dst netip.Addr, mtu int, limit time.Duration) {
	s.t.Helper()
	for end := s.now + limit; h.w.Carriage().MTU(s.end(dst)) != mtu || h.w.Carriage().Plain(s.end(dst)); s.run(s.now + time.Millisecond) {
		if c := h.w.Carriage(); s.now > end {
			s.t.Fatalf("seed %d: plain %v, MTU %d, not %d, after %v: %q", s.seed, c.Plain(s.end(dst)), c.MTU(s.end(dst)), mtu, limit, c.Why(s.end(dst)))
		}
	}
}

// Traffic of the other family is another Watcher's.
func TestView_leavesTheOtherFamily(t *testing.T) {
	for _, six := range []bool{false, true} {
		s, _ := newView(t, "leaf-spine:leaves=3,spines=2,hosts=2", 1, six)
		_, others := newView(t, "leaf-spine:leaves=3,spines=2,hosts=2", 1, !six)
		h := s.watch(0, Config{})
		s.sent = func(_ *simHost, p *Probe) {
			if p.Kind() != encap.Boomerang {
				t.Errorf("IPv6 %v: a probe to %v", six, p.Dst)
			}
		}
		for _, p := range others {
			s.keepTalking(h, p)
		}
		s.run(time.Second)
		if st := h.w.Stats(); st.Answered == 0 {
			t.Errorf("IPv6 %v: %+v", six, st)
		}
	}
}

// A switch's error about a full-size probe is believed over IPv6, too.
func TestView_tooBig(t *testing.T) {
	s, peers := newView(t, "leaf-spine:leaves=2,spines=1,hosts=2", 1, true)
	h := s.watch(0, Config{MTU: 1500})
	s.keepTalking(h, peers[0])
	s.run(2 * time.Second)
	var full []byte
	s.sent = func(_ *simHost, p *Probe) {
		if p.Kind() == encap.Boomerang && p.Len() > encap.ProbeLen6 {
			full = p.Append(nil)
		}
	}
	for full == nil {
		s.run(s.now + 10*time.Microsecond) // it is still on its way
		if s.now > 4*time.Second {
			t.Fatal("no full-size boomerang is sent")
		}
	}
	if len(full) != 1460 {
		t.Errorf("%d bytes long", len(full))
	}
	router, rack := s.topo.Node(s.end(peers[0])).Addr, s.end(peers[0])
	forged := slices.Clone(full)
	forged[56] ^= 1 // its token
	h.w.TooBig(dataplanetest.TooBig6(router, 1380, forged), s.now)
	if h.w.Stats().TooBig != 0 || h.w.Carriage().MTU(rack) != 1460 {
		t.Errorf("a forged error: %+v, MTU %d", h.w.Stats(), h.w.Carriage().MTU(rack))
	}
	h.w.TooBig(dataplanetest.TooBig6(router, 1380, full), s.now)
	if st := h.w.Stats(); st.TooBig != 1 || st.Unknown != 1 || h.w.Carriage().MTU(rack) != 1380 {
		t.Errorf("%+v, MTU %d", st, h.w.Carriage().MTU(rack))
	}
}

// In fabrics that nobody would have computed, over either family, all dead paths are found
// and no others, and the floor holds.
func TestView_avoidsWhatIsDeadInAnyClos(t *testing.T) {
	seen := 0
	for seed := range uint64(fewer(200)) {
		g, err := graph.New(graphtest.Random(seed))
		if err != nil {
			t.Fatal(seed, err)
		}
		for id := range graph.NodeID(g.NumHosts()) {
			topo, err := topology.FromGraph(g, g.Node(id).Addresses[0])
			if err != nil {
				t.Fatal(seed, err)
			}
			s := worldOf(t, topo, seed)
			var active []netip.Addr
			for peer := range graph.NodeID(g.NumHosts()) {
				a := g.Node(peer).Addresses[0]
				if set := topo.Paths(0, s.end(a)); peer != id && !set.Direct() && len(set.Live) > 0 && len(active) < 3 {
					active = append(active, a)
				}
			}
			if len(active) > 0 {
				chaos(t, s, active, 3)
				seen++
				break
			}
		}
	}
	if seen < fewer(200)/4 {
		t.Errorf("only %d of the graphs had a pair of hosts with paths to choose from", seen)
	}
}

// What full-size probes are tried, and which MTU is too small for a family.
func TestConfig_sizesOfAFamily(t *testing.T) {
	for _, c := range []struct {
		six       bool
		mtu, last int
		ok        bool
	}{
		{false, 1500, 596, true}, {false, 596, 596, true}, {false, 595, 0, false},
		{true, 1500, 1320, true}, {true, 9000, 1320, true}, {true, 1320, 1320, true}, {true, 1319, 0, false},
	} {
		s, _ := newView(t, "leaf-spine:leaves=2,spines=1,hosts=2", 1, c.six)
		w, err := New(Config{Topology: s.topo, MTU: c.mtu})
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil && (w.sizes[0] != c.mtu || w.sizes[len(w.sizes)-1] != c.last || !slices.IsSortedFunc(w.sizes, func(a, b int) int { return b - a }) ||
			len(slices.Compact(slices.Clone(w.sizes))) != len(w.sizes)) {
			t.Errorf("%+v: %v", c, w.sizes)
		}
	}
}
