package probe

import (
	"net/netip"
	"testing"
	"time"

	"weft/encap"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// A host at two edge switches sends each probe by the uplink of its path. It answers by either,
// but not by one whose paths are down.
func TestDriver_severalUplinks(t *testing.T) {
	shape, err := topology.Parse("leaf-spine:leaves=4,spines=2,hosts=1")
	if err != nil {
		t.Fatal(err)
	}
	s, err := operator.SpecHomed(shape, 1, operator.Homing{Uplinks: 2})
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(s)
	if err != nil {
		t.Fatal(err)
	}
	own, far := g.Node(0).Addresses[0], g.Node(graph.NodeID(g.NumHosts() - 1)).Addresses[0]
	top, err := topology.FromGraph(g, own)
	if err != nil {
		t.Fatal(err)
	}
	type sent struct {
		via  netip.Addr
		from int
	}
	probes, answers := make(map[sent]int), make(map[sent]int)
	d, err := New(Config{Topology: top, Address: own, Seed: 1, Interval: 10 * time.Millisecond, Multiplier: 3, Budget: 1000, Floor: 0.5,
		WriteBy: func(packet []byte, via netip.Addr, from int) error {
			inner, err := encap.Decapsulate(packet)
			if err != nil {
				t.Fatal(err)
			}
			p, err := encap.ParseProbe(inner)
			if err != nil {
				t.Fatal(err)
			}
			if p.Kind == encap.ProbeReply {
				answers[sent{via, from}]++
			} else {
				probes[sent{via, from}]++
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	for now := time.Duration(0); now < 100*time.Millisecond; now = max(now+time.Millisecond, d.Next()) {
		d.Tick(now)
	}
	set := top.PathsTo(0, far)
	for n := range set.Count() {
		if probes[sent{set.Addr(n), set.From(n)}] == 0 {
			t.Errorf("no boomerang by path %d: %v", n, probes)
		}
	}
	ask := func(now time.Duration) {
		t.Helper()
		clear(answers)
		for token := range uint64(20) {
			b, err := encap.AppendProbe(make([]byte, encap.MaxOverhead), encap.Probe{Kind: encap.ProbeRequest, Token: token, Path: 1,
				Via: set.Addr(0), Origin: far, Target: own, Padding: 4})
			if err != nil {
				t.Fatal(err)
			}
			d.Take(b, now)
		}
	}
	ask(time.Second)
	if answers[sent{set.Addr(0), 0}] != 10 || answers[sent{set.Addr(0), 1}] != 10 {
		t.Errorf("answers: %v", answers)
	}
	if err := d.SetTopology(top.Without(top.Beyond(0)...), time.Second); err != nil {
		t.Fatal(err)
	}
	ask(2 * time.Second)
	if answers[sent{set.Addr(0), 1}] != 20 {
		t.Errorf("without an uplink: %v", answers)
	}
}
