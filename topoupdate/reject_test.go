package topoupdate

import (
	"net/netip"
	"testing"
	"time"
)

// Every way in which a message can be wrong is counted under its name and has no
// effect, with keys and without.
func TestReceive_rejectsAndCounts(t *testing.T) {
	good := testEntry{version: version{5, 5}, down: []uint64{2}}
	for _, keys := range []Keys{{}, {List: []Key{testKey}}} {
		for _, test := range []struct {
			want   Reject
			name   string
			change func(c *couple, b []byte) []byte
		}{
			{RejectTruncated, "empty", func(c *couple, b []byte) []byte { return nil }},
			{RejectTruncated, "short header", func(c *couple, b []byte) []byte { return b[:headerSize-1] }},
			{RejectOversized, "long", func(c *couple, b []byte) []byte { return append(b, make([]byte, MaxMessage)...) }},
			{RejectVersion, "magic", func(c *couple, b []byte) []byte { b[0]++; return b }},
			{RejectVersion, "version", func(c *couple, b []byte) []byte { b[atVersion]++; return b }},
			{RejectType, "type", func(c *couple, b []byte) []byte { b[atType] = 3; return b }},
			{RejectFabric, "fingerprint", func(c *couple, b []byte) []byte { b[atFingerprint]++; return b }},
			{RejectSender, "sender", func(c *couple, b []byte) []byte { b[atSender+3]++; return b }},
			{RejectSender, "sender's port", func(c *couple, b []byte) []byte { b[atSenderPort+1]++; return b }},
			{RejectReplay, "old session", func(c *couple, b []byte) []byte { b[atSession+7]--; return b }},
			{RejectReplay, "unproven", func(c *couple, b []byte) []byte { b[atHeard+7]++; return b }},
			{RejectReplay, "counter", func(c *couple, b []byte) []byte { b[atCounter+7] = 0; return b }},
			{RejectKey, "key", func(c *couple, b []byte) []byte { b[atKey] = 99; return b }},
			{RejectMAC, "one bit", func(c *couple, b []byte) []byte { b[headerSize+entryIncarnation] ^= 1; return b }},
			{RejectMAC, "cut", func(c *couple, b []byte) []byte { return b[:len(b)-1] }},
		} {
			signed := len(keys.List) > 0
			if !signed && (test.want == RejectKey || test.want == RejectMAC) {
				continue
			}
			c := newCouple(t, "fat-tree:k=4", "c1.1", keys)
			e := good
			e.originator = int(c.peers[0].Peer)
			b := c.message(0, &message{header: header{kind: typeUpdate}, entries: []testEntry{e}})
			checkRejected(t, c, test.name, test.want, test.change(c, b))
		}
	}
}

// A message whose MAC is right may still say what cannot be; none of its entries
// counts then.
func TestReceive_rejectsWholeMessages(t *testing.T) {
	for _, test := range []struct {
		want   Reject
		name   string
		second func(e *testEntry, c *couple)
		cut    int // bytes off the end, negative: more
		count  int // more entries than there are
	}{
		{RejectOriginator, "of a host", func(e *testEntry, c *couple) { e.originator = 0 }, 0, 0},
		{RejectOriginator, "of nobody", func(e *testEntry, c *couple) { e.originator = c.top.NumNodes() }, 0, 0},
		{RejectOriginator, "of a negative", func(e *testEntry, c *couple) { e.originator = -1 }, 0, 0},
		{RejectOriginator, "of an edge switch", func(e *testEntry, c *couple) { e.originator, e.down = c.top.NumHosts(), []uint64{1 << 2} }, 0, 0},
		{RejectPort, "a port too many", func(e *testEntry, c *couple) { e.down = []uint64{1 << 4} }, 0, 0},
		{RejectPort, "bytes too many", func(e *testEntry, c *couple) { e.down = []uint64{0, 1} }, 0, 0},
		{RejectTruncated, "cut", nil, 1, 0},
		{RejectTruncated, "too few entries", nil, 0, 1},
		{RejectTrailing, "too many entries", nil, 0, -1},
		{RejectTrailing, "more bytes", nil, -1, 0},
	} {
		c := newCouple(t, "fat-tree:k=4", "c1.1", Keys{})
		first := testEntry{originator: int(c.peers[0].Peer), version: version{5, 5}, down: []uint64{2}}
		second := testEntry{originator: int(c.peers[1].Peer), version: version{5, 5}, down: []uint64{1}}
		if test.second != nil {
			test.second(&second, c)
		}
		b := c.message(0, &message{header: header{kind: typeUpdate}, entries: []testEntry{first, second}})
		b[atCount+1] += byte(test.count)
		if test.cut > 0 {
			b = b[:len(b)-test.cut]
		} else {
			b = append(b, make([]byte, -test.cut)...)
		}
		checkRejected(t, c, test.name, test.want, b)
	}
}

func checkRejected(t *testing.T, c *couple, name string, want Reject, b []byte) {
	t.Helper()
	before, top, entries, sent := c.agent.Stats(), c.agent.Topology(), len(c.agent.Database()), c.sent
	c.agent.Receive(0, b, c.now)
	c.drain()
	after := c.agent.Stats()
	before.Received++
	before.Rejected[want]++
	if after != before {
		t.Errorf("%s: want %v: counted\n%+v, want\n%+v", name, want, after, before)
	}
	if c.agent.Topology() != top || len(c.agent.Database()) != entries || c.sent != sent {
		t.Errorf("%s: it had an effect", name)
	}
}

// Whatever arrives, nothing panics, what is known stays within bounds, and a
// message without proof never has an effect on links.
func FuzzReceive(f *testing.F) {
	c := newCouple(f, "fat-tree:k=4", "c1.1", Keys{})
	entry := testEntry{originator: int(c.peers[0].Peer), version: version{1, 1}, down: []uint64{1}}
	f.Add(0, c.message(0, &message{header: header{kind: typeUpdate}, entries: []testEntry{entry, entry}}))
	f.Add(1, c.message(1, &message{header: header{kind: typeHello}, hello: hello{time.Second, 3, false, true}}))
	f.Add(1, c.message(1, &message{header: header{kind: typeHello}, hello: hello{0, 1, true, false}}))
	ring := mustRing(f, Keys{List: []Key{{ID: testKey.ID, Secret: []byte("not the same secret")}}})
	f.Add(0, ring.Sign(c.message(0, &message{header: header{kind: typeUpdate}, entries: []testEntry{entry}}), 0))
	f.Fuzz(func(t *testing.T, port int, b []byte) {
		for _, keys := range []Keys{{}, {List: []Key{testKey}}} {
			c := newCouple(t, "fat-tree:k=4", "c1.1", keys)
			before := c.agent.Topology()
			c.agent.Receive(port, b, c.now)
			c.drain()
			if len(keys.List) > 0 && c.agent.Topology() != before {
				t.Error("unsigned bytes have an effect")
			}
			if next := c.agent.Next(); next < c.now {
				t.Errorf("due at %v, now is %v", next, c.now)
			}
			l, err := NewListener(ListenerConfig{Topology: c.top, Self: 0})
			if err != nil {
				t.Fatal(err)
			}
			if l.Receive(b, netip.Addr{}, c.now) != (l.Topology() != c.top) {
				t.Error("Receive does not tell whether the topology changed")
			}
		}
	})
}
