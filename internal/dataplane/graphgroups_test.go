package dataplane

import (
	"net/netip"
	"testing"

	"weft/encap"
	"weft/link"
	"weft/topology"
	"weft/topology/graph"
)

// Racks that share their first bouncing switch, but not the others, have paths of their own.
func TestWrap_racksThatShareTheFirstPathOnly(t *testing.T) {
	const text = `nodes:
  s1: {tier: 2, addresses: [172.16.0.1], sids: {node: "fcbb:bbbb:1::/48"}}
  s2: {tier: 2, addresses: [172.16.0.2], sids: {node: "fcbb:bbbb:2::/48"}}
  s3: {tier: 2, addresses: [172.16.0.3], sids: {node: "fcbb:bbbb:3::/48"}}
  a: {tier: 1, prefixes: [10.0.1.0/24]}
  b: {tier: 1, prefixes: [10.0.2.0/24]}
  c: {tier: 1, prefixes: [10.0.3.0/24]}
  h: {addresses: [10.0.1.2, "2001:db8::2"]}
links:
  - {ends: [h, a]}
  - {ends: [a, s1]}
  - {ends: [a, s2]}
  - {ends: [a, s3]}
  - {ends: [b, s1]}
  - {ends: [b, s2]}
  - {ends: [c, s1]}
  - {ends: [c, s3]}
`
	g, err := graph.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	self := netip.MustParseAddr("10.0.1.2")
	view, err := topology.FromGraph(g, self)
	if err != nil {
		t.Fatal(err)
	}
	for _, carrier := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		device, _ := link.NewPair(1500, 1)
		e, err := NewEgress(Config{Address: self, Topology: view, Device: device, Policy: "drb", Carrier: carrier, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for dst, not := range map[string][2]string{"10.0.2.2": {"172.16.0.3", "fcbb:bbbb:3:fe04::"}, "10.0.3.2": {"172.16.0.2", "fcbb:bbbb:2:fe04::"}} {
			ways := make(map[netip.Addr]int)
			for i := range 20 {
				out := e.wrapOne(append(make([]byte, encap.MaxOverhead), packetTo(netip.MustParseAddr(dst), uint32(i)*1000)...), 0)
				if carrier == encap.CarrierSRv6 {
					ways[netip.AddrFrom16([16]byte(out[24:]))]++
				} else {
					ways[netip.AddrFrom4([4]byte(out[16:]))]++
				}
			}
			if len(ways) != 2 || ways[netip.MustParseAddr(not[carrier])] > 0 {
				t.Errorf("%v to %s: bounces at %v", carrier, dst, ways)
			}
		}
	}
}
