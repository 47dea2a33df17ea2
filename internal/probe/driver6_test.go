package probe

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/dataplane/dataplanetest"
	"weft/liveness"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// operators is a fat-tree with an operator's addresses.
func operators(t testing.TB) *graph.Graph {
	t.Helper()
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(operator.Spec(top, 1))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// addr6 is a node's IPv6 address.
func addr6(g *graph.Graph, id graph.NodeID) netip.Addr {
	all := g.Node(id).Addresses
	return all[slices.IndexFunc(all, netip.Addr.Is6)]
}

// newLoop6 is newLoop over IPv6, between the first and the last host of operators.
func newLoop6(t *testing.T, change func(*Config)) *loop {
	t.Helper()
	g := operators(t)
	top, err := topology.FromGraph(g, addr6(g, 0))
	if err != nil {
		t.Fatal(err)
	}
	return loopIn(t, Config{Topology: top, Address: addr6(g, 0)}, addr6(g, graph.NodeID(g.NumHosts()-1)), change)
}

// All that proves a carrier comes and goes over IPv6, full-size probes included.
func TestDriver_provesIPv6(t *testing.T) {
	l := newLoop6(t, nil)
	var requests, longest int
	l.alive = func(p encap.Probe) bool {
		longest = max(longest, p.Len())
		if p.Kind == encap.ProbeRequest {
			requests++
			set := l.d.base.PathsTo(0, l.far)
			if p.Target != l.far || p.Via != set.Addr(int(p.Path)) || p.Carrier != encap.CarrierIPIP {
				t.Errorf("%+v", p)
			}
		}
		return true
	}
	for l.now < 2*time.Second {
		l.d.Active(l.far, l.now)
		l.run(l.now + 200*time.Millisecond)
	}
	if c := l.d.Carriage(); c.Plain(l.edge()) || c.MTU(l.edge()) != 1460 || c.Why(l.edge()) != "" {
		t.Errorf("plain %v, MTU %d: %q", c.Plain(l.edge()), c.MTU(l.edge()), c.Why(l.edge()))
	}
	if st := l.d.Stats(); requests == 0 || longest != 1460 || st.Unsent+st.Forged+st.Refused+st.Watcher.Unknown+st.Watcher.Missed > 0 {
		t.Errorf("%d requests, up to %d bytes: %+v", requests, longest, st)
	}
}

// A switch's "packet too big" is believed at once.
func TestDriver_takesTooBig(t *testing.T) {
	l := newLoop6(t, nil)
	var tooBig [][]byte
	narrow := false
	write := l.d.config.Write
	l.d.config.Write = func(packet []byte, via netip.Addr) error {
		if narrow && len(packet) > 1400 {
			tooBig = append(tooBig, append(make([]byte, encap.MaxOverhead), dataplanetest.TooBig6(via, 1400, packet)...))
			return nil
		}
		return write(packet, via)
	}
	l.run(time.Second)
	narrow = true
	for end := l.now + 10*time.Second; len(tooBig) == 0; l.run(l.now + time.Millisecond) {
		if l.now > end {
			t.Fatal("no full-size probe is sent")
		}
	}
	l.d.Take(tooBig[0], l.now)
	if st := l.d.Stats(); st.Watcher.TooBig != 1 || st.Forged > 0 || st.Watcher.Unknown > 0 {
		t.Errorf("%+v", st)
	}
}

// A request is answered by the switch by which it has come, in its length and class. Who is
// no host, or asks by no path, is refused. IPv4 is another Driver's.
func TestDriver_echoesIPv6(t *testing.T) {
	var sent [][]byte
	var vias []netip.Addr
	l := newLoop6(t, func(c *Config) {
		c.Write = func(packet []byte, via netip.Addr) error {
			sent, vias = append(sent, slices.Clone(packet)), append(vias, via)
			return nil
		}
	})
	g := operators(t)
	own := addr6(g, 0)
	set := l.d.base.PathsTo(0, l.far)
	ask := func(p encap.Probe) {
		t.Helper()
		p.Kind, p.Token = encap.ProbeRequest, 5
		b, err := encap.AppendProbe(make([]byte, encap.MaxOverhead), p)
		if err != nil {
			t.Fatal(err)
		}
		l.d.Take(b, time.Second)
	}
	for n := range set.Count() {
		for _, padding := range []int{0, 1300} {
			want := encap.Probe{Path: 77, Via: set.Addr(n), Origin: l.far, Target: own, Padding: padding, AsData: n%2 == 0}
			ask(want)
			want.Kind, want.Token = encap.ProbeReply, 5
			if len(sent) == 0 || vias[len(vias)-1] != set.Addr(n) {
				t.Fatalf("by %v: answered by %v: %+v", set.Addr(n), vias, l.d.Stats())
			}
			inner, err := encap.Decapsulate(sent[len(sent)-1])
			if err != nil {
				t.Fatal(err)
			}
			if got, err := encap.ParseProbe(inner); err != nil || got != want {
				t.Errorf("the reply is %+v, %v; want %+v", got, err, want)
			}
		}
	}
	answered := len(sent)
	ask(encap.Probe{Via: set.Addr(0), Origin: addr6(g, 1), Target: own})                             // of the own rack
	ask(encap.Probe{Via: set.Addr(0), Origin: netip.MustParseAddr("2001:db8:dead::1"), Target: own}) // nobody's
	ask(encap.Probe{Via: netip.MustParseAddr("2001:db8:dead::1"), Origin: l.far, Target: own})       // by no path
	ask(encap.Probe{Path: 77, Origin: l.far, Target: own})
	if st := l.d.Stats(); st.Refused != 4 || st.Forged != 0 || int(st.Echoed) != answered || len(sent) != answered {
		t.Errorf("%+v, sent %d", st, len(sent)-answered)
	}
	of4 := func(id graph.NodeID) netip.Addr {
		all := g.Node(id).Addresses
		return all[slices.IndexFunc(all, netip.Addr.Is4)]
	}
	ask(encap.Probe{Origin: of4(graph.NodeID(g.NumHosts() - 1)), Target: of4(0)})
	if st := l.d.Stats(); st.Refused != 4 || st.Forged != 0 || len(sent) != answered {
		t.Errorf("a request of IPv4: %+v, sent %d", st, len(sent)-answered)
	}
}

// A Topology is as seen from an address of the Driver's family.
func TestNew_families(t *testing.T) {
	g := operators(t)
	top, err := topology.FromGraph(g, addr6(g, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range g.Node(0).Addresses {
		_, err := New(Config{Topology: top, Address: a, Observe: func(*liveness.Watcher, time.Duration) {}})
		if (err == nil) != a.Is6() {
			t.Errorf("%v: %v", a, err)
		}
	}
}

// Whatever comes in, a Driver of either family writes nothing but what fits, and stays
// sound.
func FuzzDriver_Take(f *testing.F) {
	g := operators(f)
	far := g.Node(graph.NodeID(g.NumHosts() - 1)).Addresses
	var drivers []*Driver
	for i, a := range g.Node(0).Addresses {
		top, err := topology.FromGraph(g, a)
		if err != nil {
			f.Fatal(err)
		}
		d, err := New(Config{Topology: top, Address: a, MTU: 1500, Seed: 1, Write: func(packet []byte, via netip.Addr) error {
			if len(packet) > encap.MaxProbeLen+encap.MaxOverhead || packet[0]>>4 == 6 != via.Is6() {
				f.Errorf("to %v goes %x", via, packet)
			}
			return nil
		}})
		if err != nil {
			f.Fatal(err)
		}
		drivers = append(drivers, d)
		request, err := encap.AppendProbe(nil, encap.Probe{Kind: encap.ProbeRequest, Token: 1, Origin: far[i], Target: a, Via: top.PathsTo(0, far[i]).Addr(0), Padding: 4})
		if err != nil {
			f.Fatal(err)
		}
		home, err := encap.AppendProbe(nil, encap.Probe{Kind: encap.Boomerang, Token: 1, Origin: a, Target: a, Padding: 4})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(request)
		f.Add(home)
		if a.Is6() {
			f.Add(dataplanetest.TooBig6(far[i], 1400, home))
		} else {
			f.Add(dataplanetest.SwitchError(3, 4, 1400, top.PathsTo(0, far[i]).Addr(0), home, 548))
		}
	}
	now := time.Duration(0)
	f.Fuzz(func(t *testing.T, packet []byte) {
		now += time.Millisecond
		for _, d := range drivers {
			d.Tick(now)
			before := d.Stats()
			d.Take(append(make([]byte, encap.MaxOverhead), packet...), now)
			after := d.Stats()
			if after.Echoed+after.Refused+after.Forged > before.Echoed+before.Refused+before.Forged+1 {
				t.Fatalf("%x counts more than once: %+v, %+v", packet, before, after)
			}
		}
	})
}
