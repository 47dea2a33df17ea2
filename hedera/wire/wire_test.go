package wire

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"weft/flowcell"
	"weft/topoupdate"
)

var (
	hostAddr   = netip.MustParseAddr("10.0.0.2")
	hostAt     = netip.MustParseAddrPort("10.0.0.2:40000")
	serverAt   = []netip.AddrPort{netip.MustParseAddrPort("10.9.0.1:9341"), netip.MustParseAddrPort("10.9.0.2:9341")}
	secret     = topoupdate.Keys{List: []topoupdate.Key{{ID: 1, Secret: bytes.Repeat([]byte{7}, 32)}}}
	otherKey   = topoupdate.Keys{List: []topoupdate.Key{{ID: 1, Secret: bytes.Repeat([]byte{8}, 32)}}}
	via        = netip.MustParseAddr("10.4.1.1")
	somePlaces = []Placement{{Tuple: flowOf(1, true).Tuple, Path: 3, Via: via, For: 3 * time.Second},
		{Tuple: flowOf(2, false).Tuple, Path: 65535, Via: netip.MustParseAddr("fd00::1")}}
)

func flowOf(n int, six bool) Flow {
	f := Flow{Rate: uint64(n) * 1000, Tuple: flowcell.FiveTuple{Proto: flowcell.ProtoTCP, SrcPort: uint16(n), DstPort: 80,
		Src: flowcell.AddressFrom(hostAddr), Dst: flowcell.AddressFrom(netip.MustParseAddr("10.3.1.2"))}}
	if six {
		f.Tuple.Src, f.Tuple.Dst = flowcell.AddressFrom(netip.MustParseAddr("fd00::2")), flowcell.AddressFrom(netip.MustParseAddr("fd00::3"))
	}
	return f
}

// talk is a node and two servers, and what they have said.
type talk struct {
	t     *testing.T
	now   time.Duration
	rng   *rand.Rand
	node  *Node
	desks []*Desk
	said  []said
	got   []Flow
	told  []Placement
}

type said struct {
	b  []byte
	to netip.AddrPort // a server, or the node
	by netip.AddrPort
}

func newTalk(t *testing.T, nodeKeys, serverKeys topoupdate.Keys) *talk {
	t.Helper()
	c := &talk{t: t, now: time.Second, rng: rand.New(rand.NewPCG(1, 1))}
	for range serverAt {
		c.desks = append(c.desks, c.newDesk(serverKeys))
	}
	c.newNode(nodeKeys)
	return c
}

func (c *talk) newNode(k topoupdate.Keys) {
	c.t.Helper()
	var err error
	c.node, err = NewNode(NodeConfig{Fabric: 5, Address: hostAddr, Servers: serverAt, Keys: k, Random: c.rng.Uint64}, c.now)
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *talk) newDesk(k topoupdate.Keys) *Desk {
	c.t.Helper()
	d, err := NewDesk(DeskConfig{Fabric: 5, Keys: k, Known: func(a netip.Addr) bool { return a == hostAddr }, Random: c.rng.Uint64})
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

// from returns a function that sends for one side.
func (c *talk) from(by netip.AddrPort) func(netip.AddrPort, []byte) {
	return func(to netip.AddrPort, b []byte) { c.said = append(c.said, said{bytes.Clone(b), to, by}) }
}

// deliver delivers what was said, and what is said to that.
func (c *talk) deliver() (all []said) {
	for len(c.said) > 0 {
		m := c.said[0]
		c.said = c.said[1:]
		all = append(all, m)
		c.hear(m)
	}
	return all
}

func (c *talk) hear(m said) error {
	if m.to == hostAt {
		list, err := c.node.Receive(m.b, m.by, c.now)
		c.told = append(c.told, list...)
		return err
	}
	for i, d := range c.desks {
		if serverAt[i] == m.to {
			_, flows, err := d.Receive(m.b, m.by, c.now, c.from(serverAt[i]))
			c.got = append(c.got, flows...)
			return err
		}
	}
	return nil
}

// poll lets a hello's time pass.
func (c *talk) poll() []said {
	c.now += HelloEvery
	c.node.Poll(c.now, c.from(hostAt))
	return c.deliver()
}

func (c *talk) report(flows ...Flow) bool {
	return c.node.Report(Report{flows}, c.now, c.from(hostAt))
}

func TestTalk_reportsGoToTheLeaderAndPlacementsBack(t *testing.T) {
	c := newTalk(t, secret, secret)
	c.poll()
	if c.report(flowOf(1, false)) {
		t.Error("a report without a leader")
	}
	c.desks[0].Lead(false, serverAt[1], 7)
	c.desks[1].Lead(true, serverAt[1], 7)
	c.poll()
	if at, epoch := c.node.Leader(c.now); at != serverAt[1] || epoch != 7 {
		t.Fatalf("the leader is %v since %d", at, epoch)
	}
	var want []Flow
	for n := range 300 {
		want = append(want, flowOf(n, n%2 == 0))
	}
	if !c.report(want...) {
		t.Fatal("not sent")
	}
	if c.deliver(); len(c.got) != len(want) {
		t.Fatalf("%d of %d flows came", len(c.got), len(want))
	}
	for i, f := range c.got {
		if f != want[i] {
			t.Fatalf("flow %d is %+v, want %+v", i, f, want[i])
		}
	}
	if !c.desks[1].Place(hostAddr, somePlaces, c.now, c.from(serverAt[1])) {
		t.Fatal("not placed")
	}
	if c.deliver(); len(c.told) != 2 || c.told[0] != somePlaces[0] || c.told[1] != somePlaces[1] {
		t.Errorf("placements %+v, want %+v", c.told, somePlaces)
	}
	if c.desks[0].Place(hostAddr, somePlaces, c.now, c.from(serverAt[0])) {
		t.Error("a server that does not lead places")
	}
	// The leader says nothing any more: nobody leads.
	c.now += 2 * silence
	if c.report(flowOf(1, false)) {
		t.Error("a report to a leader that is silent")
	}
}

// A leader that is none any more, and does not know, is not believed once its successor was
// heard.
func TestTalk_anEarlierEpochIsRefused(t *testing.T) {
	c := newTalk(t, secret, secret)
	c.poll()
	c.desks[0].Lead(true, serverAt[0], 7)
	c.poll()
	c.desks[1].Lead(true, serverAt[1], 8)
	c.poll()
	if at, _ := c.node.Leader(c.now); at != serverAt[1] {
		t.Errorf("reports go to %v", at)
	}
	c.desks[0].Place(hostAddr, somePlaces, c.now, c.from(serverAt[0]))
	if c.deliver(); len(c.told) > 0 || c.node.Rejects()[RejectEpoch] != 1 {
		t.Errorf("the deposed leader places %v; rejected %v", c.told, c.node.rejects.ByName())
	}
	c.desks[1].Place(hostAddr, somePlaces, c.now, c.from(serverAt[1]))
	if c.deliver(); len(c.told) != 2 {
		t.Error("the leader's placements do not come")
	}
	// etcd has been set up anew, and its epochs begin again.
	c.desks[1].Lead(false, netip.AddrPort{}, 0)
	c.desks[0].Lead(true, serverAt[0], 2)
	c.now += forgetEpoch
	c.poll()
	if at, epoch := c.node.Leader(c.now); at != serverAt[0] || epoch != 2 {
		t.Errorf("the leader is %v since %d", at, epoch)
	}
}

// All that was ever said is said again, in any order: nothing of it counts. So it is when
// either side has begun anew.
func TestTalk_replaysAreRefused(t *testing.T) {
	for name, anew := range map[string]func(c *talk){
		"nobody": func(*talk) {},
		"server": func(c *talk) { c.desks[0] = c.newDesk(secret); c.desks[0].Lead(true, serverAt[0], 7) },
		"node":   func(c *talk) { c.newNode(secret) },
	} {
		c := newTalk(t, secret, secret)
		c.desks[0].Lead(true, serverAt[0], 7)
		var all []said
		for range 3 {
			all = append(all, c.poll()...)
			c.report(flowOf(1, false))
			c.desks[0].Place(hostAddr, somePlaces, c.now, c.from(serverAt[0]))
			all = append(all, c.deliver()...)
		}
		if len(c.got) != 3 || len(c.told) != 4 {
			t.Fatalf("%d flows, %d placements before", len(c.got), len(c.told))
		}
		anew(c)
		for range 4 { // a new session is agreed on
			c.poll()
		}
		c.got, c.told = nil, nil
		for range 3 {
			for _, i := range c.rng.Perm(len(all)) {
				c.hear(all[i])
			}
			c.said = nil // the answers to what was repeated get lost
		}
		if len(c.got) > 0 || len(c.told) > 0 {
			t.Errorf("%s has begun anew: of what is repeated %d flows and %d placements count", name, len(c.got), len(c.told))
		}
		for range 4 {
			c.poll()
		}
		c.report(flowOf(2, false))
		c.deliver()
		c.desks[0].Place(hostAddr, somePlaces, c.now, c.from(serverAt[0]))
		if c.deliver(); len(c.got) != 1 || len(c.told) != 2 {
			t.Errorf("%s has begun anew: then %d flows, %d placements come, want 1 and 2", name, len(c.got), len(c.told))
		}
	}
}

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

// The first answer gets lost: the node is answered again.
func TestTalk_aLostAnswerIsRepeated(t *testing.T) {
	c := newTalk(t, secret, secret)
	c.desks[0].Lead(true, serverAt[0], 1)
	for range 3 {
		c.now += HelloEvery
		c.node.Poll(c.now, c.from(hostAt))
		for _, m := range c.said {
			c.hear(m)
		}
		c.said = nil
	}
	c.poll()
	c.poll()
	if !c.report(flowOf(1, false)) {
		t.Error("no leader is known")
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

// What a decoder accepts is canonical: encoding it again gives the same bytes.
func FuzzDecode(f *testing.F) {
	f.Add(appendFlow(nil, flowOf(1, false)))
	f.Add(appendFlow(nil, flowOf(1, true)))
	for _, p := range somePlaces {
		f.Add(appendPlacement(nil, p))
	}
	f.Add(appendLeader(nil, serverAt[0]))
	f.Add(appendLeader(appendHeader(nil, &header{kind: typeAnswer, fabric: 5, node: hostAddr, session: 1}), serverAt[0]))
	f.Fuzz(func(t *testing.T, b []byte) {
		if x, rest, err := nextFlow(b); err == nil {
			if again := append(appendFlow(nil, x), rest...); !bytes.Equal(again, b) {
				t.Errorf("flow %x became %x", b, again)
			}
		}
		if x, rest, err := nextPlacement(b); err == nil {
			if again := append(appendPlacement(nil, x), rest...); !bytes.Equal(again, b) {
				t.Errorf("placement %x became %x", b, again)
			}
		}
		if x, err := parseLeader(b); err == nil {
			if again := appendLeader(nil, x); !bytes.Equal(again, b) {
				t.Errorf("leader %x became %x", b, again)
			}
		}
		if h, err := parseHeader(b, 5); err == nil {
			again := appendHeader(nil, &h)
			again[atKey], again[atKey+1] = b[atKey], b[atKey+1] // the keyring's, and a spare byte
			if h.node.Is4() && !bytes.Equal(again[atNode:atNode+16], b[atNode:atNode+16]) || !bytes.Equal(again, b[:headerSize]) {
				t.Errorf("header %x became %x", b[:headerSize], again)
			}
		}
	})
}

// Whatever comes, neither side panics.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{0x57, 0x48, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := newTalk(t, topoupdate.Keys{}, topoupdate.Keys{})
		c.desks[0].Lead(true, serverAt[0], 1)
		c.poll()
		c.hear(said{b, serverAt[0], hostAt})
		c.hear(said{b, hostAt, serverAt[0]})
		c.deliver()
	})
}
