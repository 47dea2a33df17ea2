package topoupdate

import (
	"encoding/binary"
	"testing"
	"time"

	"weft/topology"
)

// couple is an agent and, at each of its ports to a switch, a neighbour that has
// shaken hands with it.
type couple struct {
	t     testing.TB
	top   *topology.Topology
	agent *Agent
	self  topology.NodeID
	ring  *Keyring
	now   time.Duration
	peers []peer
	sent  int // messages by the agent
	bytes int
}

type peer struct {
	topology.Port
	session, counter, heard uint64
}

func newCouple(t testing.TB, spec, self string, keys Keys) *couple {
	t.Helper()
	c := &couple{t: t, top: mustParse(t, spec), ring: mustRing(t, keys)}
	c.self = mustLookup(t, c.top, self)
	var err error
	if c.agent, err = NewAgent(AgentConfig{Topology: c.top, Self: c.self, Boot: 1, Keys: keys, Hello: time.Second}); err != nil {
		t.Fatal(err)
	}
	for _, p := range c.top.Ports(c.self) {
		c.peers = append(c.peers, peer{Port: p, session: 100})
	}
	for range 3 {
		c.tick(c.now + time.Second)
		c.greet()
	}
	for _, n := range c.agent.Neighbours() {
		if !n.Hears && int(n.Node) >= c.top.NumHosts() {
			t.Fatalf("%s has not shaken hands: %+v", self, n)
		}
	}
	return c
}

func (c *couple) greet() {
	for i := range c.peers {
		if p := &c.peers[i]; int(p.Peer) >= c.top.NumHosts() {
			c.agent.Receive(i, c.message(i, &message{header: header{kind: typeHello}, hello: hello{interval: time.Second, multiplier: 3}}), c.now)
		}
	}
	c.drain()
}

// message makes the next message of the neighbour at a port.
func (c *couple) message(port int, m *message) []byte {
	p := &c.peers[port]
	m.sender, m.senderPort, m.session, m.counter, m.heard = p.Peer, p.PeerPort, p.session, p.counter, p.heard
	p.counter++
	return m.encode(c.top.Fingerprint(), c.ring, c.now)
}

func (c *couple) tick(now time.Duration) {
	c.now = now
	c.agent.Tick(now)
	c.drain()
}

func (c *couple) drain() {
	c.agent.Send(func(port int, packet []byte) {
		c.peers[port].heard = binary.BigEndian.Uint64(packet[atSession:])
		c.sent++
		c.bytes += len(packet)
	})
}
