package main

import (
	"testing"

	"weft/internal/slowtest"
)

// A switch says by link-bandwidth communities, as docs/operating.md has it, that one of its
// links has half the rate of the other. Hosts use the paths in proportion.
func TestHost_weighsPathsByLinkBandwidth(t *testing.T) {
	slowtest.Unraced(t)
	l := newBGPLab(t, "leaf-spine:leaves=2,spines=2,hosts=1", "offload", "drb", map[string]string{"h1-1": "leaf1", "h2-1": "leaf2"})
	l.carryBoth("h1-1", "h2-1")
	for _, sw := range []string{"leaf1", "leaf2", "spine1", "spine2"} {
		l.vtysh(sw, "router bgp "+l.asOf(sw), "bgp bestpath bandwidth ignore")
	}
	lines := []string{"bgp as-path access-list OWN permit ^$"}
	neighbors := []string{"router bgp " + l.asOf("leaf2"), "address-family ipv4 unicast"}
	for _, n := range l.nodes() {
		for _, p := range n.Ports {
			rate, spine := map[string]string{"spine1": "10000", "spine2": "20000"}[p.Peer]
			if n.Node != "leaf2" || !spine {
				continue
			}
			lines = append(lines, "route-map RATE-"+rate+" permit 10", "match as-path OWN", "set extcommunity bandwidth "+rate, "exit",
				"route-map RATE-"+rate+" permit 20", "exit")
			neighbors = append(neighbors, "neighbor "+p.Port+" route-map RATE-"+rate+" out")
		}
	}
	l.vtysh("leaf2", append(lines, neighbors...)...)
	l.waitFor("twice as much goes by spine2", func() bool {
		before := l.byPort("leaf1")
		l.send("h1-1", "h2-1")
		after := l.byPort("leaf1")
		bytes := func(spine string) float64 { return float64(after[spine] - before[spine]) }
		t.Logf("leaf1 sent %.0f bytes to spine1, %.0f to spine2", bytes("spine1"), bytes("spine2"))
		ratio := bytes("spine2") / max(bytes("spine1"), 1)
		return ratio > 1.9 && ratio < 2.1
	})
}
