package hops

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/topology"
)

var start = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

// network walks packets as switches do, and answers in their names. It knows the fabric, and
// nothing of what the Walk has in mind.
type network struct {
	t     *testing.T
	f     *topology.Topology
	self  netip.Addr
	to    netip.Addr
	short bool // quotes of eight bytes behind the first header
	plain bool // the target does not run weft
}

// send returns the answer to a packet, nil if there is none.
func (n *network) send(b []byte) []byte {
	from, _ := n.f.ByAddr(n.self)
	target, _ := n.f.ByAddr(n.to)
	at := n.f.EdgeOf(from)
	for range 20 {
		if p := b[0] >> 4; p == 4 && b[9] == flowcell.ProtoIPIP {
			dst, _ := n.f.ByAddr(destination(b))
			if dst == at {
				b = b[20:]
				continue
			}
			if b[8]--; b[8] == 0 {
				b[8]++
				return n.expired(at, b)
			}
			at = n.towards(at, dst)
			continue
		}
		if at == target {
			return n.reach(b)
		}
		if b[8]--; b[8] == 0 {
			b[8]++
			return n.expired(at, b)
		}
		at = n.towards(at, target)
	}
	n.t.Fatal("a packet walks in circles")
	return nil
}

// towards is the next switch from one to a node: down where the way leads down, else up to
// where it does.
func (n *network) towards(at, to topology.NodeID) topology.NodeID {
	best, next := 1<<30, at
	for _, p := range n.f.Ports(at) {
		if d := n.distance(p.Peer, to, 6); d < best {
			best, next = d, p.Peer
		}
	}
	return next
}

func (n *network) distance(from, to topology.NodeID, most int) int {
	seen := map[topology.NodeID]int{from: 0}
	queue := []topology.NodeID{from}
	for len(queue) > 0 {
		x := queue[0]
		queue = queue[1:]
		if x == to {
			return seen[x]
		}
		if n.f.Node(x).Layer == topology.LayerHost {
			continue
		}
		for _, p := range n.f.Ports(x) {
			if _, known := seen[p.Peer]; !known && seen[x] < most {
				seen[p.Peer] = seen[x] + 1
				queue = append(queue, p.Peer)
			}
		}
	}
	return 1 << 29
}

func (n *network) expired(at topology.NodeID, b []byte) []byte {
	return n.icmp(n.f.Node(at).Addr, icmpTimeExceeded, 0, b)
}

func (n *network) icmp(from netip.Addr, kind, code byte, quote []byte) []byte {
	if n.short {
		quote = quote[:28]
	}
	p := make([]byte, 28+len(quote))
	p[0], p[8], p[9] = 0x45, 64, flowcell.ProtoICMP
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	copy(p[12:], from.AsSlice())
	copy(p[16:], n.self.AsSlice())
	p[20], p[21] = kind, code
	copy(p[28:], quote)
	return p
}

func (n *network) reach(b []byte) []byte {
	if n.plain {
		return n.icmp(n.to, icmpUnreachable, 3, b)
	}
	setTTL(b, 64)
	if _, err := encap.ReplyProbe(b); err != nil {
		n.t.Fatal(err)
	}
	return b
}

func newWalk(t *testing.T, count int, to netip.Addr) (*Walk, *network) {
	t.Helper()
	f, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	self := netip.MustParseAddr("10.0.0.2")
	all, err := Plan(f, encap.CarrierIPIP, self, to)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(24, 4))
	w, err := New(Config{Self: self, Target: to, Carrier: encap.CarrierIPIP, Paths: all, Interval: time.Second, Timeout: time.Second, Count: count, Random: r.Uint64}, start)
	if err != nil {
		t.Fatal(err)
	}
	return w, &network{t: t, f: f, self: self, to: to}
}

// Each hop of each path is answered by the switch that the plan names, whatever the quotes have
// and whoever the target is, and no switch is asked more often than it answers.
func TestWalk_findsEverySwitch(t *testing.T) {
	for _, c := range []struct {
		to    string
		paths int
		short bool
		plain bool
	}{{"10.3.1.3", 4, false, false}, {"10.3.1.3", 4, true, true}, {"10.0.1.2", 2, false, true}, {"10.0.0.3", 1, true, false}} {
		to := netip.MustParseAddr(c.to)
		w, n := newWalk(t, 3, to)
		n.short, n.plain = c.short, c.plain
		if len(w.Paths()) != c.paths {
			t.Fatalf("%s: %d paths", c.to, len(w.Paths()))
		}
		by := make(map[netip.Addr][]time.Time)
		now := start
		for ; !w.Done() && now.Sub(start) < time.Minute; now = now.Add(50 * time.Millisecond) {
			for p, ok := w.Next(now); ok; p, ok = w.Next(now) {
				a := n.send(p.Bytes)
				w.Receive(a, now.Add(300*time.Microsecond))
				from, _ := encap.InnerSource(a)
				by[from] = append(by[from], now)
			}
			w.Expire(now)
		}
		for i, p := range w.Paths() {
			for k, h := range p.Hops {
				s := w.Stats(i, k)
				want := to
				if !h.Target {
					want = n.f.Node(h.Node).Addr
				}
				if s.Sent != 3 || s.Answered != 3 || s.Lost != 0 || s.From[want] != 3 || s.Median() != 300*time.Microsecond {
					t.Errorf("%s, path %d, hop %s: %+v", c.to, p.Number, h.Name, s)
				}
			}
		}
		for from, list := range by {
			if from == to && !c.plain { // it runs weft, and answers each time
				continue
			}
			for i := Burst; i < len(list); i++ { // Linux allows six in a row
				if list[i].Sub(list[i-Burst]) < 900*time.Millisecond {
					t.Errorf("%s: %v is asked %d times within %v", c.to, from, Burst+1, list[i].Sub(list[i-Burst]))
				}
			}
		}
	}
}

// What is not answered counts as lost, what answers late or twice not at all.
func TestWalk_countsLosses(t *testing.T) {
	w, n := newWalk(t, 1, netip.MustParseAddr("10.3.1.3"))
	var answers [][]byte
	for p, ok := w.Next(start); ok; p, ok = w.Next(start) {
		answers = append(answers, n.send(p.Bytes))
	}
	w.Expire(start.Add(2 * time.Second))
	for _, a := range answers {
		w.Receive(a, start.Add(2*time.Second))
		w.Receive(a, start.Add(2*time.Second))
	}
	for i, p := range w.Paths() {
		for k := range p.Hops {
			if s := w.Stats(i, k); s.Answered != 0 || s.Lost != s.Sent {
				t.Errorf("path %d hop %d: %+v", i, k, s)
			}
		}
	}
}

// With SRv6, switches before the last label answer by the hop limit of the outer header.
func TestPlan_labels(t *testing.T) {
	f, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	all, err := Plan(f, encap.CarrierSRv6, netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.3.1.3"))
	if err != nil || len(all) != 4 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, p := range all {
		set := f.Paths(mustHost(t, f, "10.0.0.2"), mustHost(t, f, "10.3.1.3"))
		labels := len(set.Choices(p.Number))
		for i, h := range p.Hops {
			if want := i >= labels; h.Inner != want {
				t.Errorf("path %d hop %d of %d labels: inner %t", p.Number, i+1, labels, h.Inner)
			}
		}
	}
	for _, bad := range [][2]string{{"10.0.0.2", "10.0.0.2"}, {"10.0.0.2", "10.9.9.9"}, {"192.168.0.1", "10.3.1.3"}} {
		if _, err := Plan(f, encap.CarrierIPIP, netip.MustParseAddr(bad[0]), netip.MustParseAddr(bad[1])); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}

func mustHost(t *testing.T, f *topology.Topology, a string) topology.NodeID {
	t.Helper()
	id, ok := f.ByAddr(netip.MustParseAddr(a))
	if !ok {
		t.Fatal(a)
	}
	return id
}

// Whatever comes in, nothing panics, and what nobody was asked is no answer.
func FuzzReceive(f *testing.F) {
	n := &network{self: netip.MustParseAddr("10.0.0.2")}
	probe, err := encap.AppendProbe(nil, encap.Probe{Kind: encap.ProbeRequest, Token: 7, Origin: n.self, Target: netip.MustParseAddr("10.3.1.3")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(n.icmp(netip.MustParseAddr("10.0.0.1"), icmpTimeExceeded, 0, probe))
	n.short = true
	f.Add(n.icmp(netip.MustParseAddr("10.0.0.1"), icmpUnreachable, 3, probe))
	f.Add(probe)
	f.Fuzz(func(t *testing.T, b []byte) {
		w, _ := newWalk(t, 1, netip.MustParseAddr("10.3.1.3"))
		w.Next(start)
		w.Receive(b, start)
		for i, p := range w.Paths() {
			for k := range p.Hops {
				if w.Stats(i, k).Answered > 0 && len(b) < 28 {
					t.Error("an answer of less than a header")
				}
			}
		}
	})
}

// Whoever cannot see the packets is not taken for a switch: quotes without their addresses, errors
// that went to somebody else, and numbers that begin at one.
func TestWalk_forgedAnswers(t *testing.T) {
	for _, addressed := range []bool{false, true} {
		w, n := newWalk(t, 1, netip.MustParseAddr("10.3.1.3"))
		n.short = true
		var sent [][]byte
		for p, ok := w.Next(start); ok; p, ok = w.Next(start) {
			sent = append(sent, p.Bytes)
		}
		evil := netip.MustParseAddr("203.0.113.66")
		for id := range 200 {
			for _, b := range sent {
				b = slices.Clone(b)
				binary.BigEndian.PutUint16(b[4:], uint16(id)) // guessed
				if !addressed {
					binary.BigEndian.PutUint16(b[4:], binary.BigEndian.Uint16(sent[id%len(sent)][4:])) // known
					clear(b[12:20])
				}
				w.Receive(n.icmp(evil, icmpTimeExceeded, 0, b), start)
			}
		}
		for i, p := range w.Paths() {
			for k := range p.Hops {
				if s := w.Stats(i, k); s.From[evil] > 0 {
					t.Errorf("addresses %t: path %d hop %d: %d forged answers", addressed, i, k, s.From[evil])
				}
			}
		}
	}
}

// A target without weft answers as rarely as Linux lets it, and that is no loss of any path.
func TestWalk_limitedTarget(t *testing.T) {
	to := netip.MustParseAddr("10.3.1.3")
	w, n := newWalk(t, 5, to)
	n.plain = true
	tokens, at := 6.0, start
	now := start
	for ; !w.Done() && now.Sub(start) < 5*time.Minute; now = now.Add(50 * time.Millisecond) {
		for p, ok := w.Next(now); ok; p, ok = w.Next(now) {
			a := n.send(p.Bytes)
			if from, _ := encap.InnerSource(a); from == to {
				tokens, at = min(6, tokens+now.Sub(at).Seconds()), now
				if tokens < 1 {
					continue
				}
				tokens--
			}
			w.Receive(a, now.Add(300*time.Microsecond))
		}
		w.Expire(now)
	}
	for i, p := range w.Paths() {
		if s := w.Stats(i, len(p.Hops)-1); s.Answered != 5 || s.Lost != 0 {
			t.Errorf("path %d: the target: %d answered, %d lost", i, s.Answered, s.Lost)
		}
	}
}
