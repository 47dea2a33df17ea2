package topoupdate

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/topology"
)

// station is a listener and the edge switch that it hears.
type station struct {
	t        testing.TB
	top      *topology.Topology
	listener *Listener
	ring     *Keyring
	session  uint64
	counter  uint64
}

func newStation(t testing.TB, spec string, keys Keys) *station {
	t.Helper()
	s := &station{t: t, top: mustParse(t, spec), ring: mustRing(t, keys), session: 1000}
	var err error
	if s.listener, err = NewListener(ListenerConfig{Topology: s.top, Self: 0, Keys: keys}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *station) message(entries ...testEntry) []byte {
	p := s.listener.edge
	m := message{header: header{kind: typeUpdate, sender: p.Peer, senderPort: p.PeerPort, session: s.session, counter: s.counter}, entries: entries}
	s.counter++
	return m.encode(s.top.Fingerprint(), s.ring, 0)
}

func (s *station) entry(node string, seq uint32, down ...int) testEntry {
	e := testEntry{originator: int(mustLookup(s.t, s.top, node)), version: version{1, seq}, down: make([]uint64, 1)}
	for _, p := range down {
		e.down[0] |= 1 << p
	}
	return e
}

// A link is down while either of its ends says so.
func TestListener_eitherEndIsEnough(t *testing.T) {
	s := newStation(t, "fat-tree:k=4", Keys{})
	link := s.top.Ports(mustLookup(t, s.top, "a1.2"))[2] // to c1.1, its port 1
	for _, c := range []struct {
		entry testEntry
		live  bool
	}{
		{s.entry("a1.2", 1, 2), false},
		{s.entry("c1.1", 1, 1), false},
		{s.entry("a1.2", 2), false},
		{s.entry("c1.1", 2), true},
		{s.entry("c1.1", 3, 1), false},
		{s.entry("c1.1", 4, 0), true},
	} {
		before := s.listener.Topology()
		changed := s.listener.Receive(s.message(c.entry), netip.Addr{}, 0)
		after := s.listener.Topology()
		if after.Live(link.Link) != c.live || changed != (before != after) {
			t.Errorf("%+v: live %v, changed %v", c.entry, after.Live(link.Link), changed)
		}
	}
}

// What is down in the baseline stays down, and a host that hears nothing any more
// comes back to the baseline.
func TestListener_baseline(t *testing.T) {
	top := mustParse(t, "fat-tree:k=4")
	c11 := top.Ports(mustLookup(t, top, "c1.1"))
	base := top.Without(c11[2].Link)
	l, err := NewListener(ListenerConfig{Topology: base, Self: 0, MaxAge: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if l.Topology() != base {
		t.Error("it does not begin with the baseline")
	}
	s := station{t: t, top: top, listener: l, ring: mustRing(t, Keys{}), session: 1}
	l.Receive(s.message(s.entry("c1.1", 1, 1, 2)), netip.Addr{}, 0)
	l.Receive(s.message(s.entry("c1.1", 2, 1)), netip.Addr{}, 0)
	if l.Topology().Live(c11[2].Link) || l.Topology().Live(c11[1].Link) {
		t.Error("what is down in the baseline came up")
	}
	if l.Next() != time.Second || l.Tick(time.Second-1) || !l.Tick(time.Second) {
		t.Errorf("ageing is due at %v", l.Next())
	}
	if diff, _ := l.Topology().Diff(base); len(diff) > 0 {
		t.Errorf("without news, links %v differ from the baseline", diff)
	}
}

// A listener that has heard its switch takes no recording of before; one that has
// just started does, until the switch says the next thing.
func TestListener_replayToAHostThatHasJustStarted(t *testing.T) {
	keys := Keys{List: []Key{testKey}}
	s := newStation(t, "fat-tree:k=4", keys)
	link := s.top.Ports(mustLookup(t, s.top, "c1.1"))[1].Link
	recorded := s.message(s.entry("c1.1", 1, 1))
	later := s.message(s.entry("c1.1", 2))
	fresh, err := NewListener(ListenerConfig{Topology: s.top, Self: 0, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	if fresh.Receive(later, netip.Addr{}, 0); fresh.Receive(recorded, netip.Addr{}, 1) {
		// the window lets the counter pass, the sequence does not
		t.Error("a recording is taken for news")
	}
	deceived := s.listener
	if !deceived.Receive(recorded, netip.Addr{}, 0) || deceived.Topology().Live(link) {
		t.Error("the test is void: the recording is good")
	}
	if deceived.Receive(recorded, netip.Addr{}, 1) {
		t.Error("the same recording counts twice")
	}
	if !deceived.Receive(later, netip.Addr{}, 2) || !deceived.Topology().Live(link) || deceived.Receive(recorded, netip.Addr{}, 3) {
		t.Error("what the switch says does not end the deceit")
	}
}

func TestConfig_errorsNameTheField(t *testing.T) {
	top := mustParse(t, "fat-tree:k=4")
	good := AgentConfig{Topology: top, Self: topology.NodeID(top.NumHosts()), Boot: 1}
	for _, c := range []struct {
		change func(*AgentConfig)
		says   string
	}{
		{func(c *AgentConfig) { c.Topology = nil }, "Topology"},
		{func(c *AgentConfig) { c.Self = 0 }, "Self"},
		{func(c *AgentConfig) { c.Self = -1 }, "Self"},
		{func(c *AgentConfig) { c.Boot = 0 }, "Boot"},
		{func(c *AgentConfig) { c.Hello = -1 }, "Hello"},
		{func(c *AgentConfig) { c.Multiplier = 1 }, "Multiplier"},
		{func(c *AgentConfig) { c.Multiplier = 256 }, "Multiplier"},
		{func(c *AgentConfig) { c.Refresh = -1 }, "Refresh"},
		{func(c *AgentConfig) { c.MaxAge = time.Second }, "MaxAge"},
		{func(c *AgentConfig) { c.Damping = Damping{Hold: 2, Max: 1} }, "Damping.Max"},
		{func(c *AgentConfig) { c.Keys.List = []Key{{}} }, "Keys.List[0].ID"},
	} {
		config := good
		c.change(&config)
		if _, err := NewAgent(config); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want it to name %s", err, c.says)
		}
	}
	if _, err := NewAgent(good); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		config ListenerConfig
		says   string
	}{
		{ListenerConfig{}, "Topology"},
		{ListenerConfig{Topology: top, Self: good.Self}, "Self"},
		{ListenerConfig{Topology: top, Self: -1}, "Self"},
		{ListenerConfig{Topology: top, MaxAge: -1}, "MaxAge"},
		{ListenerConfig{Topology: top, Keys: Keys{List: []Key{{}}}}, "Keys.List[0].ID"},
	} {
		if _, err := NewListener(c.config); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want it to name %s", err, c.says)
		}
	}
}
