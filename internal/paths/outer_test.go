package paths

import (
	"net/netip"
	"strings"
	"testing"

	"weft/encap"
	"weft/topology"
	"weft/topology/graph"
)

const text = `nodes:
  s1: {tier: 2, addresses: [172.16.0.1], sids: {node: "fcbb:bbbb:1::/48"}}
  s2: {tier: 2, addresses: [172.16.0.2], sids: {node: "fcbb:bbbb:2::/48", decap4: "fcbb:bbbb:2:f1::/64"}}
  l1: {tier: 1, prefixes: [10.0.1.0/24]}
  l2: {tier: 1, prefixes: [10.0.2.0/24]}
  a: {addresses: [10.0.1.2, "2001:db8::2"]}
  b: {addresses: [10.0.2.2]}
links:
  - {ends: [a, l1]}
  - {ends: [b, l2]}
  - {ends: [l1, s1]}
  - {ends: [l2, s1]}
  - {ends: [l1, s2]}
  - {ends: [l2, s2]}
`

func view(t *testing.T, text, self string) *topology.Topology {
	t.Helper()
	g, err := graph.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := topology.FromGraph(g, netip.MustParseAddr(self))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestOuter_bySIDsWhereTheFabricIsData(t *testing.T) {
	v := view(t, text, "10.0.1.2")
	self, to := netip.MustParseAddr("10.0.1.2"), netip.MustParseAddr("10.0.2.2")
	if err := CheckSRv6(v); err != nil {
		t.Fatal(err)
	}
	set := v.PathsTo(0, to)
	for n, sid4 := range []string{"fcbb:bbbb:1:fe04::", "fcbb:bbbb:2:f1::"} {
		want, err := encap.NewSIDOuter(netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr(sid4), netip.MustParseAddr([]string{"fcbb:bbbb:1:fe06::", "fcbb:bbbb:2:fe06::"}[n]))
		if err != nil {
			t.Fatal(err)
		}
		if got := Outer(v, encap.CarrierSRv6, self, set, n); got != want {
			t.Errorf("path %d: %+v, want %+v", n, got, want)
		}
		if got, ok := OuterTo(v, encap.CarrierSRv6, self, to, n); !ok || got != want {
			t.Errorf("path %d: %+v, want %+v", n, got, want)
		}
	}
	if got := Source6(v, self).String(); got != "2001:db8::2" {
		t.Errorf("from %s", got)
	}
	if _, err := Split(set); err == nil {
		t.Error("paths of data have labels")
	}
}

func TestCheckSRv6_whatIsMissing(t *testing.T) {
	for _, c := range []struct{ text, self, want string }{
		{text, "10.0.2.2", "host b has no IPv6 address"},
		{strings.Replace(text, `, sids: {node: "fcbb:bbbb:1::/48"}`, "", 1), "10.0.1.2", "switch s1 has no SIDs"},
	} {
		v := view(t, c.text, c.self)
		if err := CheckSRv6(v); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
		if _, err := OuterBy(v, encap.CarrierSRv6, netip.MustParseAddr(c.self), netip.MustParseAddr("172.16.0.1"), nil); err == nil {
			t.Error("an outer header without a source or a destination")
		}
		if Source6(v, netip.MustParseAddr(c.self)).IsValid() != (c.self == "10.0.1.2") {
			t.Error("a source that is not the host's")
		}
	}
	computed, err := topology.FatTree(4)
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckSRv6(computed); err != nil {
		t.Error(err)
	}
}
