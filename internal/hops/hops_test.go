package hops

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"weft/encap"
	"weft/topology"
)

var start = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

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
