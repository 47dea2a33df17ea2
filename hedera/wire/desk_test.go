package wire

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"weft/topoupdate"
)

// A key does not make its holder another node: what comes from elsewhere than the node's address
// begins no session, reports nothing, and moves nothing.
func TestDesk_aNodeIsItsAddress(t *testing.T) {
	c := newTalk(t, secret, secret)
	c.desks[0].Lead(true, serverAt[0], 1)
	elsewhere := netip.MustParseAddrPort("10.3.1.3:40000")
	for range 2 {
		c.now += HelloEvery
		c.node.Poll(c.now, c.from(elsewhere))
		for _, m := range c.deliver() {
			if m.to == elsewhere {
				c.node.Receive(m.b, m.by, c.now)
			}
		}
	}
	if c.node.Report(Report{[]Flow{flowOf(1, false)}}, c.now, c.from(elsewhere)) {
		t.Error("a node that is another one has a session")
	}
	c.poll()
	c.poll()
	c.node.Report(Report{[]Flow{flowOf(1, false)}}, c.now, c.from(elsewhere))
	if c.deliver(); len(c.got) > 0 {
		t.Errorf("%d flows are taken from elsewhere", len(c.got))
	}
	c.desks[0].Place(hostAddr, somePlaces, c.now, c.from(serverAt[0]))
	for _, m := range c.deliver() {
		if m.to != hostAt {
			t.Errorf("placements go to %v", m.to)
		}
	}
	if n := c.desks[0].Stats().Rejected[RejectSource]; n != 2+1 {
		t.Errorf("%d messages are refused for their source, want the hellos and the report", n)
	}
	// Another port of the node's is no other node.
	c.node.Report(Report{[]Flow{flowOf(1, false)}}, c.now, c.from(netip.AddrPortFrom(hostAddr, 9)))
	if c.deliver(); len(c.got) != 1 {
		t.Errorf("%d flows from another port", len(c.got))
	}
}

// Hellos of earlier sessions are said again before each message, while a node begins and while it
// works: it is heard all the same.
func TestDesk_oldHellosSilenceNobody(t *testing.T) {
	c := newTalk(t, secret, secret)
	c.desks[0].Lead(true, serverAt[0], 1)
	var old []said
	for range 20 {
		for _, m := range c.poll() {
			if m.by == hostAt {
				old = append(old, m)
			}
		}
		c.newNode(secret)
	}
	deliver := func() {
		for len(c.said) > 0 {
			m, rest := c.said[0], c.said[1:]
			for _, o := range old {
				c.said = nil
				c.hear(o)
				for _, answer := range c.said {
					c.hear(answer)
				}
			}
			c.said = rest
			c.hear(m)
		}
	}
	for turn := range 5 {
		c.now += HelloEvery
		c.node.Poll(c.now, c.from(hostAt))
		deliver()
		if turn == 0 {
			continue // the first hello; the second one proves
		}
		before := len(c.got)
		c.report(flowOf(turn, false))
		if deliver(); len(c.got) != before+1 {
			t.Errorf("turn %d: the node's report is not heard", turn)
		}
	}
}

func TestTalk_keys(t *testing.T) {
	open := secret
	open.AcceptUnsigned = true
	for name, k := range map[string]struct {
		node, server topoupdate.Keys
		works        bool
		why          Reject
	}{
		"the same":      {secret, secret, true, 0},
		"others":        {otherKey, secret, false, RejectMAC},
		"none":          {topoupdate.Keys{}, secret, false, RejectKey},
		"none, allowed": {topoupdate.Keys{}, open, true, 0},
	} {
		c := newTalk(t, k.node, k.server)
		c.desks[0].Lead(true, serverAt[0], 1)
		c.poll()
		c.poll()
		c.report(flowOf(1, false))
		c.deliver()
		if works := len(c.got) == 1; works != k.works {
			t.Errorf("%s: works is %v", name, works)
		}
		if got := c.desks[0].Stats().Rejected; !k.works && got[k.why] == 0 {
			t.Errorf("%s: rejected %v, want %v", name, got.ByName(), k.why)
		}
	}
}

func TestDesk_refusals(t *testing.T) {
	c := newTalk(t, secret, secret)
	c.desks[0].Lead(true, serverAt[0], 1)
	c.poll()
	c.poll()
	d := c.desks[0]
	ring, err := topoupdate.NewKeyring(secret)
	if err != nil {
		t.Fatal(err)
	}
	s := &c.node.servers[0]
	message := func(change func(*header), body []byte, cut int) []byte {
		h := header{kind: typeReport, count: 1, fabric: 5, node: hostAddr, session: s.session, heard: s.heard, counter: s.sent + 1}
		change(&h)
		b := ring.Sign(append(appendHeader(nil, &h), body...), 0)
		return b[:len(b)-cut]
	}
	one := appendFlow(nil, flowOf(1, false))
	for _, x := range []struct {
		b    []byte
		want Reject
	}{
		{message(func(h *header) {}, one, 100), RejectTruncated},
		{message(func(h *header) {}, bytes.Repeat(one, 60), 0), RejectOversized},
		{[]byte("GET / HTTP/1.1" + string(make([]byte, 100))), RejectVersion},
		{message(func(h *header) { h.kind = typePlacement }, one, 0), RejectType},
		{message(func(h *header) { h.fabric = 6 }, one, 0), RejectFabric},
		{message(func(h *header) { h.node = via }, one, 0), RejectNode},
		{message(func(h *header) {}, one, 1), RejectMAC},
		{message(func(h *header) { h.heard++ }, one, 0), RejectReplay},
		{message(func(h *header) { h.session++ }, one, 0), RejectReplay},
		{message(func(h *header) { h.counter = s.sent }, one, 0), RejectReplay},
		{message(func(h *header) {}, append(one, 0), 0), RejectTrailing},
		{message(func(h *header) { h.counter++; h.count = 2 }, one, 0), RejectTruncated},
	} {
		if _, flows, err := d.Receive(x.b, hostAt, c.now, c.from(serverAt[0])); err != x.want || len(flows) > 0 {
			t.Errorf("%v (%d flows), want %v", err, len(flows), x.want)
		}
	}
}

// A node that reports a million flows in a second gets as many looked at as its budget has.
func TestDesk_aMillionFlowsASecond(t *testing.T) {
	c := newTalk(t, topoupdate.Keys{}, topoupdate.Keys{})
	c.desks[0].Lead(true, serverAt[0], 1)
	c.poll()
	c.poll()
	var some []Flow
	for n := range MaxFlows {
		some = append(some, flowOf(n, false))
	}
	looked, reported := 0, 0
	start := c.now
	for reported < 1_000_000 {
		c.now = start + time.Duration(reported)*time.Microsecond
		c.report(some...)
		c.deliver()
		reported += len(some)
		looked, c.got = looked+len(c.got), c.got[:0]
	}
	if most := 2*flowsPerSecond + MaxFlows; looked > most || looked < flowsPerSecond {
		t.Errorf("%d of %d flows are looked at, want %d to %d", looked, reported, flowsPerSecond, most)
	}
	if got := c.desks[0].Stats().Refused; got != uint64(reported-looked) {
		t.Errorf("%d counted as refused, want %d", got, reported-looked)
	}
	// More than MaxFlows in one report: the largest are sent.
	c.now += 2 * time.Second
	c.got = nil
	c.poll()
	c.report(append(some, flowOf(60000, false))...)
	if c.deliver(); len(c.got) != MaxFlows || c.got[0].Rate != 60000*1000 {
		t.Errorf("%d flows came, the first has %d bit/s", len(c.got), c.got[0].Rate)
	}
}
