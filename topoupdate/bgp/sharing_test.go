package bgp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// Leaves that share a rack are known by both spines, and go on sharing it while they fail and
// come back. Who comes later is told of.
func TestSpec_sharing(t *testing.T) {
	const (
		other = "192.168.2.0/24 3 65101 65001 65103\n192.168.2.0/24 4 65101 65002 65103"
		far   = "192.168.2.0/24 5 65101 65001 65003 65104\n192.168.2.0/24 6 65101 65002 65003 65104"
		mate  = "192.168.1.0/24 3 65101 65001 65105\n192.168.1.0/24 4 65101 65002 65105"
	)
	say := func(tab *Table, lines string) {
		for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
			tab.Set(routeOf(t, line))
		}
	}
	shares := func(tab *Table, prefix, as string) bool {
		got, _ := text(t, tab)
		return strings.Contains(got, fmt.Sprintf("as%s: {tier: 1, prefixes: [%s]", as, prefix))
	}
	tab := table(t, prototype+other)
	if !shares(tab, "192.168.2.0/24", "65102") || !shares(tab, "192.168.2.0/24", "65103") {
		t.Error("two leaves do not share a rack")
	}
	for _, line := range []string{"192.168.2.0/24 3 0", "192.168.2.0/24 1 0"} { // each leaf loses a link
		k, _ := routeOf(t, line)
		tab.Withdraw(k)
		if !shares(tab, "192.168.2.0/24", "65102") || !shares(tab, "192.168.2.0/24", "65103") {
			t.Errorf("without %s they do not share the rack any more", line)
		}
	}

	tab = table(t, prototype)
	text(t, tab)
	say(tab, other)
	if _, guesses := text(t, tab); !strings.Contains(guesses, "the latter is taken for another edge switch of the rack") {
		t.Errorf("who comes later: %s", guesses)
	}
	if _, guesses := text(t, tab); guesses != "" || !shares(tab, "192.168.2.0/24", "65103") {
		t.Errorf("and is known: %s", guesses)
	}

	tab = table(t, prototype+mate)
	if !shares(tab, "192.168.1.0/24", "65105") || !shares(tab, "192.168.1.0/24", "65101") {
		t.Error("the own rack is not shared")
	}
	tab = table(t, prototype)
	text(t, tab)
	say(tab, mate)
	if _, guesses := text(t, tab); shares(tab, "192.168.1.0/24", "65105") || !strings.Contains(guesses, "192.168.1.0/24 of AS 65105 has this host's own address") {
		t.Errorf("somebody joins the own rack: %s", guesses)
	}

	tab = table(t, prototype+far)
	if shares(tab, "192.168.2.0/24", "65104") {
		t.Error("who is farther away shares")
	}

	tab = table(t, prototype)
	for i := range 20 {
		say(tab, fmt.Sprintf("192.168.2.0/24 %d 65101 65001 %d\n192.168.2.0/24 %d 65101 65002 %d", 10+2*i, 70000+i, 11+2*i, 70000+i))
	}
	s, _ := tab.Spec(self)
	n := 0
	for _, node := range s.Nodes {
		if slices.Contains(node.Prefixes, netip.MustParsePrefix("192.168.2.0/24")) {
			n++
		}
	}
	if n != maxSharing {
		t.Errorf("%d share a rack, want %d", n, maxSharing)
	}
}
