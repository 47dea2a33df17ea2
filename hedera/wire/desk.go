package wire

import (
	"net/netip"
	"time"

	"weft/internal/bucket"
	"weft/topoupdate"
)

const (
	// flowsPerSecond is how many reported flows a second of a node are looked at: MaxFlows
	// of them twice a second.
	flowsPerSecond = 2 * MaxFlows
	// answersPerSecond is how many answers a node's session gets.
	answersPerSecond = 10
	// unprovenPerSecond is how many answers hellos get that prove no session, for each node.
	// Anybody who can replay one takes part in it, and a node that begins has it alone to
	// live on, so it is plenty.
	unprovenPerSecond = 1000
)

// DeskConfig configures a Desk.
type DeskConfig struct {
	Fabric uint64
	Keys   topoupdate.Keys // a From is on the clock of now
	// Known reports whether an address is that of a node that reports or is told of placements.
	// It bounds the nodes.
	Known  func(netip.Addr) bool
	Random func() uint64 // unpredictable: sessions are made of it
}

// Desk is the servers' side. It is not safe for concurrent use.
type Desk struct {
	c      DeskConfig
	ring   *topoupdate.Keyring
	nodes  map[netip.Addr]*nodeSession
	leads  bool
	epoch  uint64
	leader netip.AddrPort

	stats DeskStats
	b     []byte
	flows []Flow
}

// DeskStats counts.
type DeskStats struct {
	Received uint64 // messages
	Flows    uint64 // reported, and looked at
	Refused  uint64 // reported above a node's budget, or to a server that does not lead
	Rejected Rejects
}

// nodeSession is what a server knows of a node.
type nodeSession struct {
	at       netip.AddrPort // where it is
	theirs   uint64         // its session; 0: none yet
	own      uint64
	window   topoupdate.ReplayWindow
	sent     uint64
	offered  uint64 // the server's session for the next one of the node's that proves to have heard it
	seen     time.Duration
	flows    bucket.Bucket
	answers  bucket.Bucket // to what is of the session
	unproven bucket.Bucket // to other hellos
}

// NewDesk returns a Desk that knows nobody.
func NewDesk(c DeskConfig) (*Desk, error) {
	ring, err := topoupdate.NewKeyring(c.Keys)
	if err != nil {
		return nil, err
	}
	return &Desk{c: c, ring: ring, nodes: make(map[netip.Addr]*nodeSession)}, nil
}

// SetKeys exchanges the keys.
func (d *Desk) SetKeys(k topoupdate.Keys) error {
	ring, err := topoupdate.NewKeyring(k)
	if err == nil {
		d.ring = ring
	}
	return err
}

// Lead says who leads, and since which epoch. self: this server does.
func (d *Desk) Lead(self bool, leader netip.AddrPort, epoch uint64) {
	d.leads, d.leader, d.epoch = self, leader, epoch
}

// Stats returns the counters.
func (d *Desk) Stats() DeskStats { return d.stats }

// Nodes returns how many nodes have been heard since a time.
func (d *Desk) Nodes(since time.Duration) (n int) {
	for _, s := range d.nodes {
		if s.theirs != 0 && s.seen >= since {
			n++
		}
	}
	return n
}

// Receive takes a message. It returns the node and the flows that it reports, which are
// valid until the next call, and calls send with an answer.
func (d *Desk) Receive(packet []byte, from netip.AddrPort, now time.Duration, send func(to netip.AddrPort, b []byte)) (node netip.Addr, flows []Flow, err error) {
	d.stats.Received++
	node, flows, err = d.receive(packet, from, now, send)
	d.stats.Rejected.add(err)
	d.stats.Flows += uint64(len(flows))
	return node, flows, err
}

func (d *Desk) receive(packet []byte, from netip.AddrPort, now time.Duration, send func(to netip.AddrPort, b []byte)) (netip.Addr, []Flow, error) {
	h, err := parseHeader(packet, d.c.Fabric)
	switch {
	case err != nil:
		return netip.Addr{}, nil, err
	case h.kind != typeHello && h.kind != typeReport:
		return netip.Addr{}, nil, RejectType
	case !d.c.Known(h.node):
		return netip.Addr{}, nil, RejectNode
	case from.Addr().Unmap() != h.node:
		return netip.Addr{}, nil, RejectSource // a key does not make its holder another node
	}
	packet, err = d.ring.Verify(packet)
	if err != nil {
		return netip.Addr{}, nil, rejectOf(err)
	}
	if h.session == 0 {
		return netip.Addr{}, nil, RejectReplay
	}
	s := d.nodes[h.node]
	if s == nil {
		s = &nodeSession{
			offered:  d.session(),
			flows:    bucket.New(flowsPerSecond, time.Second),
			answers:  bucket.New(answersPerSecond, time.Second),
			unproven: bucket.New(unprovenPerSecond, time.Second),
		}
		d.nodes[h.node] = s
	}
	if h.kind == typeHello {
		if h.count != 0 || len(packet) != headerSize {
			return netip.Addr{}, nil, RejectTrailing
		}
		return h.node, nil, d.hello(s, &h, from, now, send)
	}
	if err := d.take(s, &h, from, now); err != nil {
		return netip.Addr{}, nil, err
	}
	if !d.leads {
		d.stats.Refused += uint64(h.count)
		d.answer(s, &h, s.own, &s.answers, from, now, send)
		return netip.Addr{}, nil, RejectLeader
	}
	flows, err := d.read(packet[headerSize:], h.count)
	if err != nil {
		return netip.Addr{}, nil, err
	}
	for i := range flows {
		if !s.flows.Take(1, now) {
			d.stats.Refused += uint64(len(flows) - i)
			d.stats.Rejected[RejectBudget] += uint64(len(flows) - i)
			flows = flows[:i]
			break
		}
	}
	return h.node, flows, nil
}

// session is a number for a new session.
func (d *Desk) session() uint64 { return d.c.Random() | 1 }

// take notes a message of a session: the one in use, or a new one, whose node has heard what
// the server has offered.
func (d *Desk) take(s *nodeSession, h *header, from netip.AddrPort, now time.Duration) error {
	switch {
	case h.heard == s.offered:
		s.theirs, s.own, s.offered, s.window = h.session, s.offered, d.session(), topoupdate.ReplayWindow{}
	case h.heard == 0 || h.session != s.theirs || h.heard != s.own || !s.window.Fresh(h.counter):
		return RejectReplay
	}
	s.window.Mark(h.counter)
	s.at, s.seen = from, now
	return nil
}

// hello answers a hello. One that is of no session may be old, so it changes nothing: all of
// these are offered the same number until a node proves that it has heard it.
func (d *Desk) hello(s *nodeSession, h *header, from netip.AddrPort, now time.Duration, send func(to netip.AddrPort, b []byte)) error {
	err := d.take(s, h, from, now)
	switch {
	case err == nil:
		d.answer(s, h, s.own, &s.answers, from, now, send)
	case h.session != s.theirs:
		// One that has heard another number has heard an earlier start of the server. What it is
		// offered makes the node begin anew.
		d.answer(s, h, s.offered, &s.unproven, from, now, send)
	case h.heard == 0:
		d.answer(s, h, s.own, &s.unproven, from, now, send) // the first answer was lost
	default:
		return err
	}
	return nil
}

// answer says who leads, if there is a token for it.
func (d *Desk) answer(s *nodeSession, h *header, own uint64, tokens *bucket.Bucket, to netip.AddrPort, now time.Duration, send func(to netip.AddrPort, b []byte)) {
	if !tokens.Take(1, now) {
		return
	}
	a := header{kind: typeAnswer, fabric: d.c.Fabric, node: h.node, session: own, heard: h.session, epoch: d.epoch}
	if d.leads {
		a.count = 1
	}
	s.sent++
	a.counter = s.sent
	d.b = appendLeader(appendHeader(d.b[:0], &a), d.leader)
	send(to, d.ring.Sign(d.b, now))
}

// read reads the body of a report.
func (d *Desk) read(b []byte, count int) ([]Flow, error) {
	d.flows = d.flows[:0]
	for range count {
		f, rest, err := nextFlow(b)
		if err != nil {
			return nil, err
		}
		d.flows = append(d.flows, f)
		b = rest
	}
	if len(b) > 0 {
		return nil, RejectTrailing
	}
	return d.flows, nil
}

// Place tells a node of placements, in as many messages as it takes. It returns false if
// the node has no session, this server does not lead, or a placement has no form.
func (d *Desk) Place(node netip.Addr, list []Placement, now time.Duration, send func(to netip.AddrPort, b []byte)) bool {
	s := d.nodes[node]
	if s == nil || s.theirs == 0 || !d.leads {
		return false
	}
	for _, p := range list {
		if !p.Via.IsValid() || p.Path < 0 || p.Path > MaxPath {
			return false // it has no form in a message
		}
	}
	for len(list) > 0 {
		s.sent++
		h := header{kind: typePlacement, fabric: d.c.Fabric, node: node, session: s.own, heard: s.theirs, counter: s.sent, epoch: d.epoch}
		d.b = appendHeader(d.b[:0], &h)
		count := 0
		for len(list) > 0 && len(d.b)+list[0].size() <= room {
			d.b = appendPlacement(d.b, list[0])
			list = list[1:]
			count++
		}
		setCount(d.b, count)
		send(s.at, d.ring.Sign(d.b, now))
	}
	return true
}
