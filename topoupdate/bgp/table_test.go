package bgp

import (
	"net/netip"
	"strings"
	"testing"

	"weft/topology/graph"
)

var leaf = netip.MustParseAddr("192.168.1.1")

var self = Host{Name: "h1", Addresses: []netip.Addr{netip.MustParseAddr("192.168.1.2")}}

// table reads lines of a prefix, an ID and an AS path.
func table(t *testing.T, lines string) *Table {
	t.Helper()
	tab := NewTable()
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		k, r := route(t, line)
		tab.Set(k, r)
	}
	return tab
}

func route(t *testing.T, line string) (Key, Route) {
	t.Helper()
	words := strings.Fields(line)
	numbers := make([]uint32, len(words)-1)
	for i, w := range words[1:] {
		for _, c := range w {
			numbers[i] = 10*numbers[i] + uint32(c-'0')
		}
	}
	return Key{leaf, netip.MustParsePrefix(words[0]), numbers[0]}, Route{numbers[1:]}
}

// prototype is what FRR's leaf sends a host in a fabric of two leaves and two spines.
const prototype = `
192.168.1.0/24 1 65101
192.168.2.0/24 1 65101 65001 65102
192.168.2.0/24 2 65101 65002 65102
172.16.0.1/32 1 65101 65001
172.16.0.2/32 1 65101 65002
172.16.0.2/32 2 65101 65001 65102 65002
10.0.0.0/31 1 65101 65001
`

const prototypeGraph = `nodes:
  h1: {addresses: [192.168.1.2]}
  as65101: {tier: 1, prefixes: [192.168.1.0/24], as: 65101}
  as65102: {tier: 1, prefixes: [192.168.2.0/24], as: 65102}
  as65001: {tier: 2, addresses: [172.16.0.1], as: 65001}
  as65002: {tier: 2, addresses: [172.16.0.2], as: 65002}
links:
  - {ends: [h1, as65101]}
  - {ends: [as65101, as65001]}
  - {ends: [as65101, as65002]}
  - {ends: [as65102, as65001]}
  - {ends: [as65102, as65002]}
`

func text(t *testing.T, tab *Table) (graphText, guesses string) {
	t.Helper()
	s, list := tab.Spec(self)
	g, err := graph.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(g.Text()), strings.Join(list, "\n")
}

func TestSpec_prototype(t *testing.T) {
	tab := table(t, prototype)
	got, guesses := text(t, tab)
	if got != prototypeGraph || guesses != "" {
		t.Errorf("%s\n%s", got, guesses)
	}
	// The link from spine 1 to leaf 2 fails; the spine may now know a way through racks.
	k, _ := route(t, "192.168.2.0/24 1 0")
	tab.Withdraw(k)
	k, _ = route(t, "172.16.0.2/32 2 0")
	tab.Withdraw(k)
	got, _ = text(t, tab)
	if want := strings.Replace(prototypeGraph, "  - {ends: [as65102, as65001]}\n", "", 1); got != want {
		t.Errorf("%s", got)
	}
	tab.Drop(leaf)
	if got, _ = text(t, table(t, "10.0.0.0/8 1 65101")); tab.Len() != 0 || !strings.Contains(got, "as65101") {
		t.Errorf("%d routes", tab.Len())
	}
}

func TestSpec_odd(t *testing.T) {
	for _, c := range []struct{ name, routes, want, guess string }{
		{"spines of one AS", "192.168.2.0/24 1 65101 65001 65102\n192.168.2.0/24 2 65101 65001 65102\n172.16.0.1/32 1 65101 65001\n172.16.0.2/32 1 65101 65001\n2001:db8::1/128 1 65101 65001\n2001:db8::2/128 1 65101 65001",
			`  as65001-2: {tier: 2, addresses: [172.16.0.2, "2001:db8::2"], as: 65001}`, "AS 65001 is that of 2 switches"},
		{"several addresses of one", "192.168.2.0/24 1 65101 65001 65102\n172.16.0.1/32 1 65101 65001\n172.16.0.9/32 1 65101 65001",
			`  as65001: {tier: 2, addresses: [172.16.0.1, 172.16.0.9], as: 65001}`, ""},
		{"prepended", "192.168.2.0/24 1 65101 65101 65101 65001 65102\n172.16.0.1/32 1 65101 65001", "{ends: [as65102, as65001]}", ""},
		{"no address", "192.168.2.0/24 1 65101 65001 65102", "  as65102: {tier: 1", "AS 65001 announces no address of its own"},
		{"own prefix from afar", prototype + "192.168.1.0/25 1 65101 65001 65102", "prefixes: [192.168.2.0/24]", "192.168.1.0/25 of AS 65102 has this host's own address"},
		{"a more specific of another's rack", prototype + "192.168.2.128/25 1 65101 65002 65103", "prefixes: [192.168.2.0/24]", "192.168.2.128/25 of AS 65103 lies within 192.168.2.0/24 of AS 65102"},
		{"two leaves of a rack", prototype + "192.168.2.0/24 3 65101 65002 65103\n192.168.2.7/32 1 65101 65001 65102\n192.168.2.7/32 2 65101 65002 65103",
			"  others1: {}\n  as65101: {tier: 1, prefixes: [192.168.1.0/24], as: 65101}\n  as65102: {tier: 1, prefixes: [192.168.2.0/24], as: 65102}\n  as65103: {tier: 1, prefixes: [192.168.2.0/24], as: 65103}", ""},
		{"another leaf of the own rack", prototype + "192.168.1.0/24 3 65101 65002 65103", "  as65103: {tier: 1, prefixes: [192.168.1.0/24], as: 65103}", ""},
		{"a spine's aggregate", prototype + "10.0.0.0/8 1 65101 65001", "  as65001: {tier: 2", "AS 65001 passes on what others announce"},
	} {
		got, guesses := text(t, table(t, c.routes))
		if !strings.Contains(got, c.want) || !strings.Contains(guesses, c.guess) || c.guess == "" && guesses != "" {
			t.Errorf("%s: %s\n%s", c.name, got, guesses)
		}
	}
}

func TestTable_refuses(t *testing.T) {
	tab := table(t, "0.0.0.0/0 1 65101\n::/0 1 65101\n10.0.0.0/8 1\n10.0.0.0/8 2 65101 65001 65101\n10.1.0.0/16 1 1 2 3 4 5 6 7 8 9 10")
	if want := (Refused{Default: 2, NoPath: 1, Loop: 2}); tab.Len() != 0 || tab.Refused() != want {
		t.Errorf("%d routes, refused %+v, want %+v", tab.Len(), tab.Refused(), want)
	}
	// A refused route replaces the one before.
	k, r := route(t, "10.0.0.0/8 2 65101")
	tab.Set(k, r)
	tab.Set(k, Route{})
	if tab.Len() != 0 {
		t.Error("the old route is still there")
	}
	for i := range MaxRoutes {
		tab.Set(Key{leaf, k.Prefix, uint32(i)}, r)
	}
	tab.Set(Key{leaf, k.Prefix, MaxRoutes}, r)
	tab.Set(Key{leaf, k.Prefix, 0}, r) // again
	if tab.Len() != MaxRoutes || tab.Refused().NoPlace != 1 {
		t.Errorf("%d routes, %+v", tab.Len(), tab.Refused())
	}
}
