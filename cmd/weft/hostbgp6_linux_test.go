package main

import (
	"strings"
	"testing"

	"weft/internal/slowtest"
)

// IPv6 goes as IPv4 does where the switches tell of IPv6, too: over all spines, round a link
// that fails, and plain while the spines do not take its outer headers off.
func TestHost_carriesIPv6(t *testing.T) {
	slowtest.System(t)
	l := newBGPLab(t, "leaf-spine:leaves=2,spines=2,hosts=1", "offload", "drb", map[string]string{"h1-1": "leaf1", "h2-1": "leaf2"})
	for _, host := range []string{"h1-1", "h2-1"} {
		l.waitFor(host+" uses both carriers", func() bool {
			return strings.Contains(l.says(host), ": carried by ipip") && strings.Contains(l.says(host), ": carried by IPv6 in IPv6")
		})
	}
	by := l.send6("h1-1", "h2-1")
	if a, b := by["spine1"], by["spine2"]; min(a, b) < 1000 || max(a, b) > min(a, b)*3/2 {
		t.Errorf("packets bounced at %v, want as many at both spines", by)
	}
	mustWeft(t, "lab", "fail", "--name", l.name, "spine1-leaf2")
	l.waitFor("h1-1 quits the link", func() bool {
		by = l.send6("h1-1", "h2-1")
		return by["spine1"] < 100
	})
	mustWeft(t, "lab", "heal", "--name", l.name)
	l.waitFor("h1-1 takes it back", func() bool {
		by = l.send6("h1-1", "h2-1")
		return by["spine1"] > 1000
	})
	// A firewall that drops IPv6 in IPv6 takes IPv6 alone off the carrier.
	l.in("leaf1", "nft 'table ip6 filter { chain forward { type filter hook forward priority 0; ip6 nexthdr 41 drop; }; }'")
	l.waitFor("IPv6 goes plain", func() bool { return l.status("h1-1", "racks.0.plain") == "true" })
	if by = l.send6("h1-1", "h2-1"); by["spine1"]+by["spine2"] > 600 { // acknowledgements go the other way
		t.Errorf("behind a firewall packets bounced at %v", by)
	}
	if by = l.send("h1-1", "h2-1"); min(by["spine1"], by["spine2"]) < 400 {
		t.Errorf("behind a firewall for IPv6, packets of IPv4 bounced at %v", by)
	}
	l.in("leaf1", "nft delete table ip6 filter")
	l.waitFor("IPv6 is carried again", func() bool {
		by = l.send6("h1-1", "h2-1")
		return min(by["spine1"], by["spine2"]) > 1000
	})
}
