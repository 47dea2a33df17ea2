package wire

import (
	"bytes"
	"testing"
	"time"

	"weft/topoupdate"
)

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
