package dataplane

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/encap"
	"weft/link"
	"weft/policy"
	"weft/topology"
)

// by has a packet of a flow with a policy go through all stages, and returns what leaves.
func (e *Egress) by(number uint8, packet []byte, now time.Duration) []byte {
	buf := append(make([]byte, encap.MaxOverhead), packet...)
	o := &e.out
	o.Begin(len(packet))
	o.Parts, o.Policy = append(o.Parts, buf[encap.MaxOverhead:]), number
	if !e.classify(o) || !e.cut(o, 0, now) {
		return nil
	}
	return e.wrap(buf, o, now)
}

func mustPolicy(t *testing.T, e *Egress, name string) uint8 {
	t.Helper()
	n, err := e.Policy(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// unnumbered is a packet without the ID of its outer header, which all that leave count.
func unnumbered(b []byte) []byte {
	if b = bytes.Clone(b); len(b) > 20 && b[9] == 4 {
		b[4], b[5], b[10], b[11] = 0, 0, 0, 0
	}
	return b
}

// A flow with a policy leaves as from a Host that has no other: the same paths and the
// same numbers, bit by bit, whatever the Host's own flows do in between.
func TestLane_asAHostOfThatPolicy(t *testing.T) {
	const seed = 5
	names := policy.Names()
	for _, own := range names {
		for _, name := range names {
			if name == own { // they share a lane
				continue
			}
			rng := rand.New(rand.NewPCG(seed, 1))
			mixed, alone := testEgress(t, fatTree, own), testEgress(t, fatTree, name)
			number, seq := mustPolicy(t, mixed, name), uint32(0)
			for i := range 300 {
				now := time.Duration(i) * 300 * time.Microsecond
				mixed.by(0, dataPacket(uint16(100+rng.IntN(3)), rng.IntN(1400)), now)
				port, size := uint16(1+rng.IntN(3)), rng.IntN(1400)
				packet := dataPacket(port, size)
				seq += uint32(size)
				binary.BigEndian.PutUint32(packet[24:], seq)
				got, want := mixed.by(number, packet, now), alone.by(0, packet, now)
				if !bytes.Equal(unnumbered(got), unnumbered(want)) {
					t.Fatalf("seed %d: a flow of %s on a Host of %s: packet %d leaves as\n%x, want\n%x", seed, name, own, i, got[:60], want[:60])
				}
			}
		}
	}
}

// Where the uplink's program carries out the Host's policy, what it shall not touch is
// wrapped already. Its own packets leave with the number alone.
func TestLane_uplinkKnowsTheOwnPolicyOnly(t *testing.T) {
	r := &recorder{max: link.MaxSuperLen}
	e := testEgress(t, fatTree, "presto", func(c *Config) { r.Device, c.Device, c.UplinkEncapsulates = c.Device, r, true })
	for _, c := range []struct {
		policy  string
		packets int
		bounces int
	}{{"presto", 1, 0}, {"drb", 20, 4}, {"flowcell-drb", 20, 1}, {"ecmp", 20, 1}, {"local", 20, 1}} {
		r.written = nil
		o := superSegment(20)
		o.Policy = mustPolicy(t, e, c.policy)
		e.transmit(o, 0)
		e.outlet.flush()
		bounces := map[[4]byte]int{}
		for _, p := range r.written {
			if p.packet[9] == 4 {
				bounces[[4]byte(p.packet[16:20])]++
				if p.vnet.GSOType != 0 {
					t.Errorf("%s: %+v", c.policy, p.vnet)
				}
			}
		}
		if len(r.written) != c.packets || len(bounces) != c.bounces {
			t.Errorf("%s: %d packets by %v, want %d by %d bounces", c.policy, len(r.written), bounces, c.packets, c.bounces)
		}
	}
}

// The longest prefix counts, and what the flow was given counts more.
func TestLane_destinations(t *testing.T) {
	prefixes := func(pairs ...string) (all []PrefixPolicy) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, PrefixPolicy{netip.MustParsePrefix(pairs[i]), pairs[i+1]})
		}
		return all
	}
	e := testEgress(t, fatTree, "ecmp", func(c *Config) {
		c.Policies = prefixes("10.2.0.0/15", "rb", "10.3.0.0/16", "drb", "10.3.1.131/32", "presto", "10.3.1.0/24", "rrb")
	})
	for dst, want := range map[string]string{
		"10.1.0.130": "ecmp", "10.2.0.130": "rb", "10.3.0.130": "drb", "10.3.1.130": "rrb", "10.3.1.131": "presto",
		"10.0.0.131": "ecmp", "192.0.2.1": "ecmp",
	} {
		packet := dataPacket(1, 1000)
		to := netip.MustParseAddr(dst).As4()
		copy(packet[16:], to[:])
		for range 2 { // also when the pair is known
			e.by(0, fixed(packet), 0)
			if got := e.out.lane.paths.policy.Name; got != want {
				t.Errorf("%s: by %s, want %s", dst, got, want)
			}
		}
		for _, name := range []string{"ecmp", "conga"} {
			e.by(mustPolicy(t, e, name), fixed(packet), 0)
			if got := e.out.lane.paths.policy.Name; got != name {
				t.Errorf("%s: a flow of %s goes by %s", dst, name, got)
			}
		}
	}
}

func TestNewEgress_badPolicies(t *testing.T) {
	prefix := netip.MustParsePrefix
	many := make([]PrefixPolicy, maxPrefixes+1)
	for i := range many {
		many[i] = PrefixPolicy{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 32), "drb"}
	}
	for want, policies := range map[string][]PrefixPolicy{
		`Policies[1].Policy: policy "prest": unknown; known: ecmp`:      {{prefix("10.1.0.0/16"), "drb"}, {prefix("10.2.0.0/16"), "prest"}},
		`Policies[0].Policy: policy "": unknown`:                        {{prefix("10.1.0.0/16"), ""}},
		"Policies[0].Prefix invalid Prefix is not valid":                {{Policy: "drb"}},
		"Policies[0].Prefix ::ffff:10.1.0.0/112 is not valid":           {{prefix("::ffff:10.1.0.0/112"), "drb"}},
		"Policies[1].Prefix 10.1.2.3/16 is that of Policies[0] already": {{prefix("10.1.0.0/16"), "drb"}, {prefix("10.1.2.3/16"), "rb"}},
		"Policies has 1025 entries, at most 1024 are allowed":           many,
	} {
		near, _ := link.NewPair(1520, 1)
		_, err := NewEgress(Config{Address: addrA, Topology: fatTree, Device: near, Policies: policies})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	near, _ := link.NewPair(1520, 1)
	if _, err := NewEgress(Config{Address: addrA, Topology: fatTree, Device: near, Policies: many[1:]}); err != nil {
		t.Error(err)
	}
}

// What becomes known of paths holds for all policies, for those that come later, too.
func TestLane_topologyAndCarriage(t *testing.T) {
	for _, early := range []bool{true, false} {
		e := testEgress(t, fatTree, "presto")
		number := uint8(0)
		if early {
			number = mustPolicy(t, e, "drb")
			e.by(number, dataPacket(1, 1000), 0)
		}
		e.SetTopology(fatTree.WithoutNode(node(t, fatTree, "c1.1")))
		if !early {
			number = mustPolicy(t, e, "drb")
		}
		taken := map[[4]byte]bool{}
		for range 12 {
			b := e.by(number, dataPacket(1, 1000), 0)
			taken[[4]byte(b[16:20])] = true
		}
		if len(taken) != 3 {
			t.Errorf("early %v: by %v after a core has died", early, taken)
		}
		e.SetCarriage(carriageOf(t, false, 0))
		if !early {
			number = mustPolicy(t, e, "rrb") // opened when all is plain
		}
		if b := e.by(number, dataPacket(1, 1000), 0); b[9] != 6 {
			t.Errorf("early %v: carried, though that is not proved", early)
		}
		wide, err := topology.Parse("fat-tree:k=6")
		if err != nil {
			t.Fatal(err)
		}
		e.SetTopology(wide)
		for _, l := range e.lanes {
			if l.paths.topo != wide {
				t.Errorf("early %v: %s is in %v", early, l.paths.policy.Name, l.paths.topo)
			}
		}
	}
}

// Counters are of all policies together.
func TestLane_stats(t *testing.T) {
	e := testEgress(t, fatTree, "ecmp")
	for _, name := range policy.Names() {
		for range 10 {
			e.by(mustPolicy(t, e, name), dataPacket(1, 1000), 0)
		}
	}
	if n := len(e.lanes); n != len(policy.Names()) {
		t.Errorf("%d lanes", n)
	}
	s, paths := e.Stats()
	sum := uint64(0)
	for _, p := range paths {
		sum += p.Packets
	}
	if want := uint64(10 * len(policy.Names())); s.Encapsulated != want || sum != want || len(paths) != 4 {
		t.Errorf("%d packets are encapsulated, %d by %d paths, want %d by 4", s.Encapsulated, sum, len(paths), want)
	}
}

// The size of super-segments follows the smallest flowcell of all policies.
func TestEgress_CellBytes(t *testing.T) {
	e := testEgress(t, fatTree, "drb", func(c *Config) { c.PolicyOptions.FlowcellBytes = 20_000 })
	if n := e.CellBytes(); n != 0 {
		t.Errorf("%d bytes without flowcells", n)
	}
	mustPolicy(t, e, "presto")
	if n := e.CellBytes(); n != 20_000 {
		t.Errorf("%d bytes", n)
	}
}

func TestLane_allocatesNothing(t *testing.T) {
	for _, name := range policy.Names() {
		e := testEgress(t, fatTree, "presto")
		number, packet := mustPolicy(t, e, name), dataPacket(1, 1000)
		buf := append(make([]byte, encap.MaxOverhead), packet...)
		o, now := &e.out, time.Duration(0)
		send := func() {
			now += time.Microsecond
			o.Begin(len(packet))
			o.Parts, o.Policy = append(o.Parts, buf[encap.MaxOverhead:]), number
			copy(buf[encap.MaxOverhead:], packet)
			if e.classify(o) && e.cut(o, 0, now) {
				e.wrap(buf, o, now)
			}
		}
		send()
		if n := testing.AllocsPerRun(200, send); n != 0 {
			t.Errorf("%s: %v allocations a packet", name, n)
		}
	}
}

// BenchmarkLane is a packet of a Host's own policy, of a destination's and of a flow's.
func BenchmarkLane(b *testing.B) {
	for i, how := range []string{"own", "destination", "flow"} {
		b.Run(how, func(b *testing.B) {
			e := testEgress(b, fatTree, "drb", func(c *Config) {
				if i == 1 {
					c.Policies = []PrefixPolicy{{netip.MustParsePrefix("10.0.0.0/8"), "rrb"}}
				}
			})
			number := uint8(0)
			if i == 2 {
				var err error
				if number, err = e.Policy("rrb"); err != nil {
					b.Fatal(err)
				}
			}
			packet := dataPacket(1, 1000)
			buf := append(make([]byte, encap.MaxOverhead), packet...)
			o := &e.out
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				copy(buf[encap.MaxOverhead:], packet)
				o.Begin(len(packet))
				o.Parts, o.Policy = append(o.Parts, buf[encap.MaxOverhead:]), number
				if !e.classify(o) || !e.cut(o, 0, time.Duration(n)) || e.wrap(buf, o, time.Duration(n)) == nil {
					b.Fatal(fmt.Sprint(e.stats))
				}
			}
		})
	}
}

// A new connection between the ports of a former one, which had another policy, does
// not go on by a path of that policy's.
func TestLane_portsUsedAgain(t *testing.T) {
	for _, names := range [][2]string{{"presto", "flowcell-drb"}, {"letflow", "presto"}, {"luopan", "conga"}} {
		e := testEgress(t, fatTree, names[0])
		for i, number := range []uint8{0, mustPolicy(t, e, names[1]), 0} {
			e.by(number, dataPacket(1, 1000), 0)
			f := e.flows.Get(&e.out.pkt.Flow, 0)
			if f == nil || !e.out.pair.group.has(f.via) || e.out.decision.via != f.via {
				t.Errorf("%v: packet %d goes by a path of another lane", names, i)
			}
		}
	}
}

// Flowlets need to know what time it is, also where a reload brings them to a tunnel.
func TestSetPolicy_tellsTheTimeInATunnel(t *testing.T) {
	under, err := link.OpenUDP(link.UDPConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Paths: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer under.Close()
	e, err := NewEgress(Config{Address: addrA, Policy: "drb", Seed: 1, Clock: &stillClock{Time: time.Hour}, Tunnel: &Tunnel{Underlay: under, Peers: []Peer{
		{Endpoint: under.LocalAddr(), Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]time.Duration{"letflow": time.Hour, "drb": 0} {
		p, err := policy.New(name, policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e.setPolicy(p, policy.Options{}, awareConfig{}, false)
		if now := e.now(); now != want {
			t.Errorf("%s: it is %v, want %v", name, now, want)
		}
	}
}
