package wire

import (
	"net/netip"
	"slices"
	"time"

	"weft/topoupdate"
)

const (
	// HelloEvery is how often a node says hello to each server.
	HelloEvery = time.Second
	// silence is how long a server may say nothing until it counts as gone.
	silence = 3 * HelloEvery
	// renewEvery is how often a node begins anew with a server at most.
	renewEvery = 100 * time.Millisecond
)

// NodeConfig configures a Node.
type NodeConfig struct {
	Fabric  uint64     // the fingerprint, the same at all nodes and servers
	Address netip.Addr // the node's own in the fabric
	Servers []netip.AddrPort
	Keys    topoupdate.Keys // a From is on the clock of now
	Random  func() uint64   // unpredictable: sessions are made of it
}

// Node is the node's side. It is not safe for concurrent use.
type Node struct {
	c       NodeConfig
	ring    *topoupdate.Keyring
	servers []serverSession
	epoch   uint64
	rejects Rejects
	b       []byte
	flows   []Flow
	list    []Placement
}

// serverSession is what a node knows of a server.
type serverSession struct {
	addr    netip.AddrPort
	session uint64 // own
	heard   uint64 // the server's; 0: no answer yet
	sent    uint64
	window  topoupdate.ReplayWindow
	begun   time.Duration // the session
	next    time.Duration // hello
	last    time.Duration // when it was heard
	leads   bool
	epoch   uint64
}

// NewNode returns a Node that has said nothing yet.
func NewNode(c NodeConfig, now time.Duration) (*Node, error) {
	ring, err := topoupdate.NewKeyring(c.Keys)
	if err != nil {
		return nil, err
	}
	n := &Node{c: c, ring: ring}
	for _, a := range c.Servers {
		n.servers = append(n.servers, serverSession{addr: unmap(a), session: c.Random() | 1, begun: now, next: now})
	}
	return n, nil
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// SetKeys exchanges the keys.
func (n *Node) SetKeys(k topoupdate.Keys) error {
	ring, err := topoupdate.NewKeyring(k)
	if err == nil {
		n.ring = ring
	}
	return err
}

// Poll sends what is due, and returns when to call it again.
func (n *Node) Poll(now time.Duration, send func(to netip.AddrPort, b []byte)) (next time.Duration) {
	for i := range n.servers {
		s := &n.servers[i]
		if s.next <= now {
			n.b = n.header(s, typeHello, 0)
			send(s.addr, n.ring.Sign(n.b, now))
			s.next = now + HelloEvery
		}
		if i == 0 || s.next < next {
			next = s.next
		}
	}
	return next
}

func (n *Node) header(s *serverSession, kind byte, count int) []byte {
	s.sent++
	return appendHeader(n.b[:0], &header{kind: kind, count: count, fabric: n.c.Fabric, node: n.c.Address,
		session: s.session, counter: s.sent, heard: s.heard, epoch: n.epoch})
}

// Report sends a report to the leader, in as many messages as it takes. It returns false if
// no leader is known. Of more than MaxFlows flows only the largest are sent.
func (n *Node) Report(r Report, now time.Duration, send func(to netip.AddrPort, b []byte)) bool {
	s := n.leader(now)
	if s == nil {
		return false
	}
	flows := r.Flows
	if len(flows) > MaxFlows {
		n.flows = append(n.flows[:0], flows...)
		slices.SortFunc(n.flows, func(a, b Flow) int {
			switch {
			case a.Rate > b.Rate:
				return -1
			case a.Rate < b.Rate:
				return 1
			}
			return 0
		})
		flows = n.flows[:MaxFlows]
	}
	for len(flows) > 0 {
		n.b = n.header(s, typeReport, 0)
		count := 0
		for len(flows) > 0 && len(n.b)+maxFlowSize <= room {
			n.b = appendFlow(n.b, flows[0])
			flows = flows[1:]
			count++
		}
		setCount(n.b, count)
		send(s.addr, n.ring.Sign(n.b, now))
	}
	return true
}

// leader returns the server with the highest epoch of those that say that they lead.
func (n *Node) leader(now time.Duration) (best *serverSession) {
	for i := range n.servers {
		s := &n.servers[i]
		if s.heard != 0 && s.leads && now-s.last < silence && s.epoch == n.epoch {
			best = s
		}
	}
	return best
}

// Leader returns the address of the leader that reports go to; the zero AddrPort if none
// is known.
func (n *Node) Leader(now time.Duration) (netip.AddrPort, uint64) {
	if s := n.leader(now); s != nil {
		return s.addr, s.epoch
	}
	return netip.AddrPort{}, n.epoch
}

// Rejects returns the counts of what was not accepted.
func (n *Node) Rejects() Rejects { return n.rejects }

// Receive takes a message and returns the placements in it, which are valid until the next
// call.
func (n *Node) Receive(packet []byte, from netip.AddrPort, now time.Duration) ([]Placement, error) {
	list, err := n.receive(packet, unmap(from), now)
	if err != nil {
		n.rejects.add(err)
		return nil, err
	}
	return list, nil
}

func (n *Node) receive(packet []byte, from netip.AddrPort, now time.Duration) ([]Placement, error) {
	h, err := parseHeader(packet, n.c.Fabric)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(n.servers, func(s serverSession) bool { return s.addr == from })
	switch {
	case h.kind != typeAnswer && h.kind != typePlacement:
		return nil, RejectType
	case h.node != n.c.Address:
		return nil, RejectNode
	case i < 0:
		return nil, RejectSource
	}
	packet, err = n.ring.Verify(packet)
	if err != nil {
		return nil, rejectOf(err)
	}
	s := &n.servers[i]
	switch {
	case h.heard != s.session || h.session == 0:
		return nil, RejectReplay
	case s.heard == 0 && h.kind == typeAnswer:
		// The first answer of this session.
	case s.heard == 0:
		return nil, RejectReplay
	case s.heard != h.session:
		// The server has begun anew, or somebody repeats an answer to a hello that was
		// answered twice: a new session tells.
		n.renew(s, now)
		return nil, RejectReplay
	case !s.window.Fresh(h.counter):
		return nil, RejectReplay
	}
	if h.kind == typeAnswer {
		if _, err := parseLeader(packet[headerSize:]); err != nil {
			return nil, err
		}
		n.heard(s, &h, now)
		s.leads, s.epoch = h.count == 1, h.epoch
		n.epoch = max(n.epoch, h.epoch)
		return nil, nil
	}
	list, err := n.placements(packet[headerSize:], h.count)
	if err != nil {
		return nil, err
	}
	n.heard(s, &h, now)
	if h.epoch < n.epoch {
		return nil, RejectEpoch
	}
	n.epoch = h.epoch
	s.leads, s.epoch = true, h.epoch
	return list, nil
}

// heard notes a genuine message of a server.
func (n *Node) heard(s *serverSession, h *header, now time.Duration) {
	s.heard, s.last = h.session, now
	s.window.Mark(h.counter)
}

// renew begins a new session with a server.
func (n *Node) renew(s *serverSession, now time.Duration) {
	if now-s.begun < renewEvery {
		return
	}
	*s = serverSession{addr: s.addr, session: n.c.Random() | 1, begun: now, next: now}
}

// placements reads the body of a message.
func (n *Node) placements(b []byte, count int) ([]Placement, error) {
	n.list = n.list[:0]
	for range count {
		p, rest, err := nextPlacement(b)
		if err != nil {
			return nil, err
		}
		n.list = append(n.list, p)
		b = rest
	}
	if len(b) > 0 {
		return nil, RejectTrailing
	}
	return n.list, nil
}
