package topoupdate

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/topology"
)

// fewest returns the least part of a host's paths to any rack that a topology has
// of what another has.
func fewest(t, of *topology.Topology, self topology.NodeID) (part float64, rack topology.NodeID) {
	part = 1
	for n := range of.Hosts() {
		was := of.Paths(self, n.ID)
		if was.Direct() || len(was.Live) == 0 {
			continue
		}
		if p := float64(len(t.Paths(self, n.ID).Live)) / float64(len(was.Live)); p < part {
			part, rack = p, n.ID
		}
	}
	return part, rack
}

// Whatever is claimed and withdrawn in whatever order: the floor counts paths as
// the topology does, never has fewer than its part, and holds nothing for which
// there is room.
func TestFloor_countsAsTheTopologyDoes(t *testing.T) {
	for _, spec := range append([]string{"fat-tree:k=6"}, specs...) {
		for seed := range uint64(5) {
			r := rand.New(rand.NewPCG(seed, 11))
			base := mustParse(t, spec)
			base = base.Without(topology.LinkID(base.NumLinks()-1), topology.LinkID(base.NumHosts()))
			self := topology.NodeID(r.IntN(base.NumHosts()))
			f, err := newFabric(base)
			if err != nil {
				t.Fatal(err)
			}
			part := []float64{0.25, 0.5, 0.75, 1}[r.IntN(4)]
			l := newFloor(f, self, part)
			for step := range 300 {
				id := topology.LinkID(r.IntN(base.NumLinks()))
				if !base.Live(id) {
					continue
				}
				if r.IntN(3) == 0 {
					l.withdraw(id)
					for l.again > 0 {
						l.retry(nil)
					}
				} else {
					l.claim(id)
				}
				now := base
				for id := range l.taken {
					now = now.Without(id)
				}
				for n := range base.Hosts() {
					was, is := base.Paths(self, n.ID), now.Paths(self, n.ID)
					edge := base.EdgeOf(n.ID)
					if rack := int(edge - f.start[topology.LayerEdge]); !was.Direct() && l.live(rack) != len(is.Live) {
						t.Fatalf("%s, seed %d, step %d: %d paths to %s, want %d", spec, seed, step, l.live(rack), n.Name, len(is.Live))
					}
					if !was.Direct() && len(is.Live) < int(math.Ceil(part*float64(len(was.Live)))) {
						t.Fatalf("%s, seed %d, step %d: %d of %d paths to %s left, part %v", spec, seed, step, len(is.Live), len(was.Live), n.Name, part)
					}
				}
				if len(l.queue) != len(l.held) {
					t.Fatalf("%s, seed %d, step %d: %d held, %d in the queue", spec, seed, step, len(l.held), len(l.queue))
				}
				for _, id := range l.queue {
					if l.taken[id] || l.try(id) {
						t.Fatalf("%s, seed %d, step %d: %s is held without need", spec, seed, step, base.LinkName(id))
					}
				}
			}
		}
	}
}

// Somebody on the segment says, as the edge switch, that links are down: of all
// switches, as often as he likes.
func TestListener_forgeriesTakeNoMoreThanTheFloor(t *testing.T) {
	const forgeries = 28_005
	for _, spec := range []string{"fat-tree:k=4", "fat-tree:k=8", "leaf-spine:leaves=4,spines=4,hosts=2"} {
		s := newStation(t, spec, Keys{})
		r := rand.New(rand.NewPCG(7, 7))
		f := s.listener.fabric
		for i := range forgeries {
			e := testEntry{originator: s.top.NumHosts() + r.IntN(f.numSwitches()), version: version{math.MaxUint32, uint32(i + 1)}, down: []uint64{r.Uint64()}}
			layer := f.layer(topology.NodeID(e.originator))
			e.down[0] &= 1<<f.ports[layer] - 1
			if layer == topology.LayerEdge {
				e.originator, e.down[0] = int(s.listener.edge.Peer), e.down[0]&^(1<<f.hostPorts-1)
			}
			s.listener.Receive(s.message(e), netip.Addr{}, 0)
		}
		claimed := len(s.listener.db.topology().Down())
		part, rack := fewest(s.listener.Topology(), s.top, 0)
		without, _ := fewest(s.listener.db.topology(), s.top, 0)
		t.Logf("%s: %d forgeries claim %d links, which would leave %.0f %% of the paths; %d are believed, %d held; %.0f %% of the paths to %s are left", spec, forgeries,
			claimed, 100*without, len(s.listener.Topology().Down()), s.listener.Held(), 100*part, s.top.Node(rack).Name)
		if part < DefaultFloor {
			t.Errorf("%s: forgeries took all but %.0f %% of the paths to %s", spec, 100*part, s.top.Node(rack).Name)
		}
		if claimed == 0 || s.listener.Held()+len(s.listener.Topology().Down()) != claimed {
			t.Errorf("%s: %d claimed, %d held, %d down", spec, claimed, s.listener.Held(), len(s.listener.Topology().Down()))
		}
	}
}

// What is real and unsigned: one of two uplinks of the edge switch, or two of four
// cores as a whole, are believed at once; a third core is held, and believed when
// one of the first is back.
func TestListener_realFailuresAreWithinTheFloor(t *testing.T) {
	s := newStation(t, "fat-tree:k=4", Keys{})
	down := func(names ...string) bool {
		want := s.top
		for _, n := range names {
			want = want.WithoutNode(mustLookup(t, s.top, n))
		}
		changed, _ := s.listener.Topology().Diff(want)
		return len(changed) == 0
	}
	say := func(seq uint32, node string, ports ...int) {
		s.listener.Receive(s.message(s.entry(node, seq, ports...)), netip.Addr{}, 0)
	}
	for _, core := range []string{"c1.1", "c2.2"} {
		say(1, core, 0, 1, 2, 3)
	}
	if !down("c1.1", "c2.2") || s.listener.Held() != 0 {
		t.Errorf("two cores of four: %d down, %d held", len(s.listener.Topology().Down()), s.listener.Held())
	}
	say(1, "c1.2", 0, 1, 2, 3)
	if !down("c1.1", "c2.2") || s.listener.Held() != 4 {
		t.Errorf("a third: %d down, %d held", len(s.listener.Topology().Down()), s.listener.Held())
	}
	say(2, "c1.1")
	if !down("c2.2", "c1.2") || s.listener.Held() != 0 {
		t.Errorf("the first is back: %d down, %d held", len(s.listener.Topology().Down()), s.listener.Held())
	}
	s = newStation(t, "fat-tree:k=4", Keys{})
	say(1, "e0.0", 2)
	if got := s.listener.Topology().Down(); len(got) != 1 || s.listener.Held() != 0 {
		t.Errorf("an uplink of the rack's: %v down, %d held", got, s.listener.Held())
	}
}

// Signed news is believed whatever it takes, and is not anybody's to replace.
func TestListener_signedNewsKnowsNoFloor(t *testing.T) {
	keys := Keys{List: []Key{testKey}, AcceptUnsigned: true}
	s := newStation(t, "fat-tree:k=4", keys)
	forger := newStation(t, "fat-tree:k=4", Keys{})
	forger.session, forger.listener = math.MaxUint64, s.listener
	all := []string{"c1.1", "c1.2", "c2.1"}
	for i, core := range all {
		s.listener.Receive(forger.message(forger.entry(core, uint32(100+i), 0, 1, 2, 3)), netip.Addr{}, 0)
	}
	if n := len(s.listener.Topology().Down()); n != 8 || s.listener.Held() != 4 {
		t.Errorf("unsigned: %d down, %d held", n, s.listener.Held())
	}
	for _, core := range all {
		s.listener.Receive(s.message(s.entry(core, 1, 0, 1, 2, 3)), netip.Addr{}, time.Second)
	}
	if n := len(s.listener.Topology().Down()); n != 12 || s.listener.Held() != 0 {
		t.Errorf("signed: %d down, %d held; rejected %v", n, s.listener.Held(), s.listener.Stats().Rejected.ByName())
	}
	if s.listener.Receive(forger.message(forger.entry("c1.1", 200)), netip.Addr{}, 2*time.Second) {
		t.Error("what is signed was taken back by what is not")
	}
	if got := s.listener.Stats().Rejected[RejectKey]; got != 1 {
		t.Errorf("%d rejected for want of a key", got)
	}
}

func TestListener_unsignedOnlyFromTheEdgeSwitch(t *testing.T) {
	edge, other := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.3")
	for _, keys := range []Keys{{}, {List: []Key{testKey}}} {
		s := newStation(t, "fat-tree:k=4", keys)
		s.listener.sources = []netip.Addr{edge}
		got := []bool{
			s.listener.Receive(s.message(s.entry("c1.1", 1, 1)), other, 0),
			s.listener.Receive(s.message(s.entry("c1.1", 2, 2)), edge, 0),
		}
		signed := len(keys.List) > 0
		if want := []bool{signed, true}; !slices.Equal(got, want) {
			t.Errorf("signed %v: taken %v, want %v", signed, got, want)
		}
		if n := s.listener.Stats().Rejected[RejectSource]; (n == 1) == signed {
			t.Errorf("signed %v: %d rejected by their source", signed, n)
		}
	}
}
