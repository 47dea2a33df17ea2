package topology

import (
	"net/netip"
	"strings"
	"testing"

	"weft/topology/graph"
)

// The SIDs of a path are those of the switch that it bounces at, by its number and by its
// address, in all fabrics.
func TestSID_isTheBouncingSwitchs(t *testing.T) {
	some, none := 0, 0
	for seed := range uint64(100) {
		g := randomGraph(t, seed)
		for h := range graph.NodeID(g.NumHosts()) {
			v, err := FromGraph(g, g.Node(h).Addresses[0])
			if err != nil {
				t.Fatal(err)
			}
			lacks := false
			for edge := range v.Racks() {
				set := v.Paths(0, edge)
				for n := range set.Count() {
					id, _ := g.ByAddr(set.Addr(n))
					want := g.Node(id).SIDs
					for _, six := range []bool{false, true} {
						sid := want.Decap4
						if six {
							sid = want.Decap6
						}
						got, ok := set.SID(n, six)
						at, okAt := v.SIDAt(set.Addr(n), six)
						if got != sid.Addr() || at != got || ok != sid.IsValid() || okAt != ok {
							t.Fatalf("seed %d: path %d has the SID %v, and %v by address; want %v", seed, n, got, at, sid)
						}
						if ok {
							some++
						} else {
							none++
							lacks = true
						}
					}
				}
			}
			if err := v.CheckSIDs(); lacks && (err == nil || !strings.Contains(err.Error(), "has no SIDs")) || !lacks && err == nil {
				t.Fatalf("seed %d: switches lack SIDs: %v, and no host has IPv6; error %v", seed, lacks, err)
			}
		}
	}
	if some < 100 || none < 100 {
		t.Errorf("%d paths with SIDs, %d without: too few to show anything", some, none)
	}
}

func TestSIDSource(t *testing.T) {
	const text = `nodes:
  s: {tier: 2, addresses: [172.16.0.1, "2001:db8:f::1"], sids: {node: "fcbb:bbbb:1::/48"}}
  l1: {tier: 1, prefixes: [10.0.1.0/24]}
  l2: {tier: 1, prefixes: [10.0.2.0/24]}
  a: {addresses: [10.0.1.2, "2001:db8::2", "2001:db8::3"]}
  b: {addresses: [10.0.2.2]}
links:
  - {ends: [a, l1]}
  - {ends: [b, l2]}
  - {ends: [l1, s]}
  - {ends: [l2, s]}
`
	g, err := graph.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for self, want := range map[string]string{"10.0.1.2": "2001:db8::2", "2001:db8::3": "2001:db8::3", "10.0.2.2": ""} {
		v, err := FromGraph(g, netip.MustParseAddr(self))
		if err != nil {
			t.Fatal(err)
		}
		src, ok := v.SIDSource()
		if ok != (want != "") || ok && src.String() != want {
			t.Errorf("%s sends from %v, want %q", self, src, want)
		}
		if err := v.CheckSIDs(); (err == nil) != ok || !ok && !strings.Contains(err.Error(), "host b has no IPv6 address") {
			t.Errorf("%s: %v", self, err)
		}
	}
	v, _ := FatTree(4)
	_, ok := v.SIDSource()
	if _, at := v.SIDAt(v.Node(0).Addr, false); ok || at || v.CheckSIDs() == nil {
		t.Error("a computed fabric has SIDs")
	}
	if _, ok := v.Paths(0, 4).SID(0, false); ok {
		t.Error("a path of a computed fabric has a SID")
	}
}
