package liveness

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/topology"
)

func TestNew_namesWhatIsWrong(t *testing.T) {
	topo, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	good := Config{Topology: topo, Self: 3}
	for field, change := range map[string]func(c *Config){
		"Topology":        func(c *Config) { c.Topology = nil },
		"Self":            func(c *Config) { c.Self = 16 },
		"Address":         func(c *Config) { c.Address = netip.MustParseAddr("10.0.0.2") },
		"Interval":        func(c *Config) { c.Interval = time.Microsecond },
		"Multiplier":      func(c *Config) { c.Multiplier = -1 },
		"Budget":          func(c *Config) { c.Budget = 1e6 },
		"MaxDestinations": func(c *Config) { c.MaxDestinations = -1 },
		"Floor":           func(c *Config) { c.Floor = 1.5 },
		"MinHold":         func(c *Config) { c.MinHold = time.Minute; c.MaxHold = time.Second },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	good.Address = topo.EmbeddedAddr(3)
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}

// Budget bounds probes over any second, but for the bursts of its two buckets, 8 probes
// each, and half as many those of data's class; and all paths get their share.
func TestWatcher_budgetHolds(t *testing.T) {
	for _, budget := range []float64{10, 200, 2000} {
		s := newWorld(t, "fat-tree:k=6", 1)
		h := s.watch(0, Config{Budget: budget})
		for dst := range 20 {
			s.keepActive(h, topology.NodeID(9+dst))
		}
		s.all.loss = 0.05 // so that many are urgent
		var sent, asData []uint64
		rounds := fewer(300)
		for range rounds {
			s.run(s.now + 100*time.Millisecond)
			sent = append(sent, h.w.Stats().Sent)
			asData = append(asData, h.w.Stats().AsData)
			n := len(sent)
			if n > 10 && float64(sent[n-1]-sent[n-11]) > 1.1*budget+16 {
				t.Fatalf("budget %v: %d probes in a second", budget, sent[n-1]-sent[n-11])
			}
			if n > 10 && float64(asData[n-1]-asData[n-11]) > 0.55*budget+8 {
				t.Fatalf("budget %v: %d probes of data's class in a second", budget, asData[n-1]-asData[n-11])
			}
		}
		if float64(sent[len(sent)-1]) < 0.05*float64(rounds)*budget {
			t.Errorf("budget %v: only %d probes in %d tenths of a second", budget, sent[len(sent)-1], rounds)
		}
		if float64(asData[len(asData)-1]) < 0.005*float64(rounds)*budget {
			t.Errorf("budget %v: only %d probes of data's class in %d tenths of a second", budget, asData[len(asData)-1], rounds)
		}
	}
}

// Probes of one path come at irregular times, and those of all paths do not
// come at once.
func TestWatcher_probesAreSpread(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 3)
	h := s.watch(0, Config{})
	s.keepActive(h, 15)
	last := map[[2]netip.Addr]time.Duration{}
	var gaps []time.Duration
	atOnce := 0
	for s.now < 10*time.Second {
		s.run(h.w.Next() - 1)
		s.now++
		h.w.Tick(s.now)
		n := 0
		h.w.Probes(func(p *Probe) {
			if p.body.AsData { // goes beside another
				s.probe(h, *p)
				return
			}
			n++
			k := [2]netip.Addr{p.Dst, p.Via}
			if at, ok := last[k]; ok {
				gaps = append(gaps, s.now-at)
			}
			last[k] = s.now
			s.probe(h, *p)
		})
		if n > 1 {
			atOnce++
		}
	}
	slices.Sort(gaps)
	if lo, hi := gaps[0], gaps[len(gaps)-1]; lo < 15*time.Millisecond || hi > 25*time.Millisecond || hi-lo < 9*time.Millisecond {
		t.Errorf("gaps from %v to %v, want 15 to 25 ms", lo, hi)
	}
	if atOnce > len(gaps)/100 {
		t.Errorf("%d of %d probes did not go alone", atOnce, len(gaps))
	}
}

// Hosts that see the same failure and the same heal do not act at once.
func TestWatcher_hostsDoNotHerd(t *testing.T) {
	inShort(t)
	s := newWorld(t, "fat-tree:k=4", 7)
	var changes []time.Duration
	s.check = func(*simHost, *topology.Topology) { changes = append(changes, s.now) }
	for i := range 100 {
		h := s.watch(0, Config{Seed: uint64(i + 1)})
		s.keepActive(h, 15)
	}
	s.run(time.Second)
	spread := func(what string, least time.Duration) {
		slices.Sort(changes)
		if len(changes) != 100 {
			t.Fatalf("%s: %d changes of 100 hosts", what, len(changes))
		}
		if d := changes[89] - changes[9]; d < least {
			t.Errorf("%s: 80 of 100 hosts within %v, want %v", what, d, least)
		}
		changes = nil
	}
	l := s.link("a0.2-c1.1")
	s.both(l, fault{loss: 1})
	s.run(s.now + time.Second)
	spread("failure", 10*time.Millisecond)
	s.both(l, fault{})
	s.run(s.now + 2*time.Second)
	spread("heal", 20*time.Millisecond)
}

// A path that offends again stays away longer each time, within bounds.
func TestWatcher_holdGrows(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 2)
	h := s.watch(0, Config{MaxHold: 2 * time.Second})
	s.run(time.Second)
	l := s.link("a0.2-c1.1")
	var away []time.Duration
	for range 8 {
		s.both(l, fault{loss: 1})
		for h.topo.Live(l) {
			s.run(s.now + time.Millisecond)
		}
		begin := s.now
		s.both(l, fault{})
		for !h.topo.Live(l) {
			s.run(s.now + time.Millisecond)
		}
		away = append(away, s.now-begin)
	}
	t.Log(away)
	if away[0] > 350*time.Millisecond || away[3] < 2*away[0] || away[7] < 1500*time.Millisecond || slices.Max(away) > 3*time.Second {
		t.Errorf("away for %v", away)
	}
}

func TestWatcher_baselineAndOwnEvidence(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 4)
	h := s.watch(0, Config{})
	s.keepActive(h, 15)
	s.keepActive(h, 12) // of another rack, so that both together tell of the link
	near, far := s.link("a0.2-c1.1"), s.link("a3.3-c2.2")
	s.run(time.Second)
	set := func(base *topology.Topology) {
		t.Helper()
		if err := h.w.SetTopology(base, s.now); err != nil {
			t.Fatal(err)
		}
		s.settle(h)
	}
	expect := func(what string, want ...topology.LinkID) {
		t.Helper()
		if got := h.topo.Down(); !slices.Equal(got, want) {
			t.Errorf("%s: %v are down, want %v", what, got, want)
		}
	}
	before := h.topo
	set(s.topo.Without())
	if h.topo != before {
		t.Error("another pointer though nothing has changed")
	}
	set(s.topo.Without(near))
	expect("told of", near)
	s.run(s.now + time.Second)
	for _, p := range h.w.Paths() {
		if p.Dst == s.topo.Node(0).Addr && p.Via == s.topo.Node(s.node("c1.1")).Addr && p.State != Down {
			t.Errorf("boomerang to c1.1 is %v", p.State)
		}
	}
	s.both(far, fault{loss: 1})
	s.run(s.now + time.Second)
	expect("told of, and found", near, far)
	// What comes back by hearsay, and is dead, is used no longer than it takes to
	// find that out; what was found is believed though hearsay has it up.
	s.both(near, fault{loss: 1})
	set(s.topo)
	expect("found", far)
	s.run(s.now + 100*time.Millisecond)
	expect("found both", near, far)
	set(s.topo.Without(near, far))
	s.run(s.now + 500*time.Millisecond)
	set(s.topo)
	expect("own evidence against hearsay", near, far)
	clear(s.faults)
	s.run(s.now + 2*time.Second)
	expect("mended")

	// Another fabric, with a host of the same number and address, and without.
	for spec, ok := range map[string]bool{"fat-tree:k=6": true, "leaf-spine:leaves=2,spines=4,hosts=2": false} {
		other, err := topology.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		w, err := New(Config{Topology: s.topo, Self: 6})
		if err != nil {
			t.Fatal(err)
		}
		w.config.Address = other.Node(0).Addr
		w.config.Self = 0
		if !ok {
			w.config.Self = 6
		}
		if err := w.SetTopology(other, 0); (err == nil) != ok || (w.Topology() == other) != ok {
			t.Errorf("%s: %v", spec, err)
		}
	}
}
