package liveness

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/encap"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// grown are views of a fabric of four racks and four spines, without and with the nodes
// whose names begin with one of some words; IPv4 and, with six, IPv6.
func grown(t *testing.T, seed uint64, six bool, words ...string) (before, after *topology.Topology) {
	t.Helper()
	shape, err := topology.Parse("leaf-spine:leaves=4,spines=4,hosts=1")
	if err != nil {
		t.Fatal(err)
	}
	view := func(cut ...string) *topology.Topology {
		isCut := func(name string) bool {
			return slices.ContainsFunc(cut, func(w string) bool { return strings.HasPrefix(name, w) })
		}
		s := operator.Spec(shape, seed)
		self := s.Nodes[slices.IndexFunc(s.Nodes, func(n graph.Node) bool { return n.Name == "h2-1" })]
		s.Nodes = slices.DeleteFunc(s.Nodes, func(n graph.Node) bool { return isCut(n.Name) || n.Tier == 0 && n.Name != self.Name })
		s.Links = slices.DeleteFunc(s.Links, func(l graph.Link) bool {
			return slices.ContainsFunc(l.Ends[:], func(end string) bool { return isCut(end) || end[0] == 'h' && end != self.Name })
		})
		g, err := graph.New(s)
		if err != nil {
			t.Fatal(err)
		}
		a := self.Addresses[slices.IndexFunc(self.Addresses, func(a netip.Addr) bool { return a.Is6() == six })]
		v, err := topology.FromGraph(g, a)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return view(words...), view()
}

// watched is a Watcher whose probes come home at once, but for those by some switches.
type watched struct {
	*Watcher
	now  time.Duration
	dead map[netip.Addr]bool // no boomerang comes home
	deaf map[netip.Addr]bool // no request is answered
}

func (w *watched) run(d time.Duration, peers ...netip.Addr) {
	for end := w.now + d; w.now < end; w.now += time.Millisecond {
		for _, p := range peers {
			w.Active(p, p, w.now)
		}
		w.Tick(w.now)
		var home [][]byte
		w.Probes(func(p *Probe) {
			packet := p.Append(nil)
			if w.dead[p.Via] || w.deaf[p.Via] && p.Kind() == encap.ProbeRequest {
				return
			}
			if p.Kind() == encap.ProbeRequest {
				if _, err := encap.ReplyProbe(packet); err != nil {
					panic(err)
				}
			}
			home = append(home, packet)
		})
		for _, packet := range home {
			w.Answer(packet, w.now)
		}
		w.Topology()
	}
}

// plain are the racks that packets do not go to by the carrier.
func plain(w *Watcher, t *topology.Topology) (names []string) {
	for edge := range t.Racks() {
		if w.Carriage().Plain(edge) {
			names = append(names, t.Node(edge).Name)
		}
	}
	return names
}

// When the fabric grows, what is proved stays proved, what is known to be dead stays out of
// use, and what is new is proved first.
func TestWatcher_growsWithTheFabric(t *testing.T) {
	for _, six := range []bool{false, true} {
		for seed := range uint64(4) {
			before, after := grown(t, seed, six, "leaf1", "spine2", "h1")
			self := before.Node(0).Addr
			w, err := New(Config{Topology: before, Self: 0, Address: self, Seed: seed, MTU: 1500})
			if err != nil {
				t.Fatal(err)
			}
			bounce := func(t *topology.Topology, name string) netip.Addr {
				for n := range t.Nodes() {
					if n.Name == name {
						return n.Addr
					}
				}
				return netip.Addr{}
			}
			peer := func(t *topology.Topology, rack string) (a netip.Addr) {
				for edge := range t.Racks() {
					if t.Node(edge).Name == rack {
						a = t.RackPrefixesOf(edge, six)[0].Addr().Next().Next()
					}
				}
				return a
			}
			x := &watched{Watcher: w, dead: map[netip.Addr]bool{bounce(after, "spine2"): true}, deaf: make(map[netip.Addr]bool)}
			three, four := peer(after, "leaf3"), peer(after, "leaf4")
			x.run(3*time.Second, three, four)
			if got := plain(w, before); len(got) > 0 {
				t.Fatalf("seed %d: %v go plain at first", seed, got)
			}
			x.deaf[bounce(after, "spine3")] = true // dead for what is beyond
			x.run(2*time.Second, three, four)
			used := func(base *topology.Topology, rack string) (names []string) {
				now := w.Topology()
				for edge := range base.Racks() {
					if base.Node(edge).Name != rack {
						continue
					}
					s := now.PathsTo(0, peer(after, rack))
					for _, n := range s.Live {
						names = append(names, now.Node(s.Bounce(n)).Name)
					}
				}
				return names
			}
			want := []string{"spine1", "spine4"}
			if got := used(before, "leaf3"); !slices.Equal(got, want) {
				t.Fatalf("seed %d: leaf3 by %v, want %v", seed, got, want)
			}
			stats := w.Stats()
			if err := w.SetTopology(after, x.now); err != nil {
				t.Fatal(err)
			}
			// leaf1 is new, and has switches that are proved.
			if got := plain(w, after); len(got) > 0 {
				t.Errorf("seed %d: %v go plain when the fabric has grown", seed, got)
			}
			check := func(when string) {
				t.Helper()
				for _, rack := range []string{"leaf3", "leaf4"} {
					if got := used(after, rack); !slices.Equal(got, want) {
						t.Errorf("seed %d, %s: %s by %v, want %v", seed, when, rack, got, want)
					}
				}
			}
			check("at once")
			for range 20 {
				x.run(100*time.Millisecond, three, four)
				check("later")
			}
			if s := w.Stats(); s.GivenUp != stats.GivenUp || s.Sent == stats.Sent {
				t.Errorf("seed %d: the carrier was given up %d times", seed, s.GivenUp-stats.GivenUp)
			}
			delete(x.dead, bounce(after, "spine2"))
			want = []string{"spine1", "spine2", "spine4"}
			x.run(4*time.Second, three, four)
			check("spine2 works")
			// Back to what it was, as after an error.
			if err := w.SetTopology(before, x.now); err != nil {
				t.Fatal(err)
			}
			want = []string{"spine1", "spine4"}
			if got := used(before, "leaf3"); !slices.Equal(got, want) || len(plain(w, before)) > 0 {
				t.Errorf("seed %d, back: leaf3 by %v, want %v; plain are %v", seed, got, want, plain(w, before))
			}
		}
	}
}

// A switch that has lost its proof has not got it back because the fabric grows.
func TestWatcher_growsUnproved(t *testing.T) {
	before, after := grown(t, 1, false, "leaf1", "h1")
	w, err := New(Config{Topology: before, Self: 0, Address: before.Node(0).Addr, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	x := &watched{Watcher: w, dead: make(map[netip.Addr]bool)}
	for n := range after.Nodes() {
		if n.Layer == topology.LayerAgg {
			x.dead[n.Addr] = true
		}
	}
	x.run(time.Second)
	if err := w.SetTopology(after, x.now); err != nil {
		t.Fatal(err)
	}
	x.run(time.Second)
	if got := plain(w, after); len(got) != 3 {
		t.Errorf("plain are %v, want three racks", got)
	}
}
