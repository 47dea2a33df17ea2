// Package graphtest makes fabrics for tests.
package graphtest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	"weft/topology/graph"
)

// Random returns a Clos that nobody would have computed: 1 to 5 tiers of a few switches,
// each wired to some of the tier above by bundles of 1 to 3 links of odd rates, racks of 0
// to 3 hosts, and now and then a host with two uplinks.
func Random(seed uint64) graph.Spec {
	r := rand.New(rand.NewPCG(seed, 17))
	var s graph.Spec
	tiers := 1 + r.IntN(graph.MaxTier)
	if tiers == 1 && r.IntN(4) > 0 {
		tiers = 3
	}
	names := make([][]string, tiers+1)
	for tier := 1; tier <= tiers; tier++ {
		for i := range 1 + r.IntN(5) {
			n := graph.Node{Name: fmt.Sprintf("s%d-%d", tier, i), Tier: tier, AS: uint32(65000 + 100*tier + i),
				Addresses: []netip.Addr{netip.AddrFrom4([4]byte{172, 16, byte(tier), byte(i + 1)})}}
			if r.IntN(2) == 0 {
				n.Addresses = append(n.Addresses, netip.MustParseAddr(fmt.Sprintf("2001:db8::%d:%d", tier, i+1)))
			}
			if i%2 == 1 {
				n.SIDs.Node = netip.MustParsePrefix(fmt.Sprintf("fcbb:bbbb:%x::/48", 256*tier+i))
			}
			if i%4 == 1 {
				n.SIDs.Decap6 = netip.MustParsePrefix(fmt.Sprintf("fcbb:bbbb:%x:f1::/64", 256*tier+i))
			}
			if tier == 1 {
				n.Prefixes = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, byte(i), 64}), 26)}
			}
			names[tier] = append(names[tier], n.Name)
			s.Nodes = append(s.Nodes, n)
		}
	}
	rates := []float64{0, 100, 250, 400, 1000}
	wire := func(low, high string) {
		rate := rates[1+r.IntN(len(rates)-1)]
		if r.IntN(20) == 0 {
			rate = 0
		}
		for range 1 + max(0, r.IntN(5)-2) {
			l := graph.Link{Ends: [2]string{low, high}, Rate: rate}
			if r.IntN(2) == 0 {
				l.Ends = [2]string{high, low}
			}
			s.Links = append(s.Links, l)
		}
	}
	for tier := 1; tier < tiers; tier++ {
		wired := make(map[string]bool)
		for _, low := range names[tier] {
			for _, high := range names[tier+1] {
				if r.IntN(5) > 1 {
					wired[high] = true
					wire(low, high)
				}
			}
		}
		for _, high := range names[tier+1] { // one without any link below is an error
			if !wired[high] {
				wire(names[tier][r.IntN(len(names[tier]))], high)
			}
		}
	}
	for i, edge := range names[1] {
		for h := range r.IntN(4) {
			n := graph.Node{Name: fmt.Sprintf("h%d-%d", i, h), Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 168, byte(i), byte(66 + h)})}}
			s.Nodes = append(s.Nodes, n)
			s.Links = append(s.Links, graph.Link{Ends: [2]string{n.Name, edge}, Rate: 10})
			if r.IntN(3) == 0 {
				s.Links = append(s.Links, graph.Link{Ends: [2]string{n.Name, names[1][r.IntN(len(names[1]))]}})
			}
		}
	}
	r.Shuffle(len(s.Nodes), func(i, j int) { s.Nodes[i], s.Nodes[j] = s.Nodes[j], s.Nodes[i] })
	r.Shuffle(len(s.Links), func(i, j int) { s.Links[i], s.Links[j] = s.Links[j], s.Links[i] })
	return s
}
