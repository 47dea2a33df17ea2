package switchconf

import (
	"slices"
	"strings"
	"testing"

	"weft/internal/frr"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

const text = `nodes:
  spine1: {tier: 2, addresses: [172.16.0.1, "2001:db8::1"], as: 65001}
  leaf1:  {tier: 1, prefixes: [192.168.1.64/26], as: 65101}
  leaf2:  {tier: 1, addresses: [172.16.1.2], prefixes: [192.168.2.64/26]}
  h1: {addresses: [192.168.1.66]}
links:
  - {ends: [leaf1, spine1], ports: [swp1, swp7]}
  - {ends: [leaf1, h1], ports: [swp3, eth0]}
`

func parse(t *testing.T, text string) *graph.Graph {
	t.Helper()
	g, err := graph.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func node(t *testing.T, g *graph.Graph, name string) graph.NodeID {
	t.Helper()
	id, ok := g.ByName(name)
	if !ok {
		t.Fatalf("no %s", name)
	}
	return id
}

func TestFRR_leafAndSpine(t *testing.T) {
	g := parse(t, text)
	for name, want := range map[string][]string{
		"leaf1": {"router bgp 65101", " bgp router-id 0.0.254.77", " neighbor swp1 interface remote-as 65001", " bgp listen range 192.168.1.64/26 peer-group weft",
			"  network 192.168.1.64/26", "  neighbor weft addpath-tx-all-paths", "  neighbor weft route-map weft-none in", "route-map weft-none deny 10"},
		"spine1": {" ip address 172.16.0.1/32", " ipv6 address 2001:db8::1/128", " bgp router-id 172.16.0.1", " neighbor swp7 interface remote-as 65101",
			"  network 2001:db8::1/128", "  neighbor swp7 addpath-tx-all-paths", "  neighbor swp7 activate"},
	} {
		got, err := FRR(g, node(t, g, name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range want {
			if !slices.Contains(strings.Split(got, "\n"), line) {
				t.Errorf("%s: no %q in\n%s", name, line, got)
			}
		}
		// What leads up sends its best path alone: racks hear all of them from above.
		for _, not := range []string{"swp1 addpath", "swp3", "eth0"} {
			if strings.Contains(got, not) {
				t.Errorf("%s: %q in\n%s", name, not, got)
			}
		}
	}
}

// FRR's own shell has nothing against what is printed for it.
func TestFRR_accepted(t *testing.T) {
	if err := frr.Available(); err != nil {
		t.Skip(err)
	}
	top, err := topology.Parse("fat-tree:k=2")
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(operator.Spec(top, 1))
	if err != nil {
		t.Fatal(err)
	}
	first, _ := g.Tier(1)
	for id := first; int(id) < g.NumNodes(); id++ {
		for _, opts := range []Options{{}, {BFD: true}} {
			text, err := FRR(g, id, opts)
			if err != nil {
				t.Fatal(err)
			}
			if err := frr.CheckConfig(text); err != nil {
				t.Errorf("%s, %+v: %v\n%s", g.Node(id).Name, opts, err, text)
			}
		}
	}
	if frr.CheckConfig("router bgp nonsense\n") == nil {
		t.Error("FRR accepts anything")
	}
}

// Of a host at two leaves, both announce what they have routes to.
func TestFRR_hostsAtSeveralSwitches(t *testing.T) {
	g := parse(t, strings.Replace(text, "prefixes: [192.168.2.64/26]}", "prefixes: [192.168.1.64/26], as: 65102}", 1)+
		"  - {ends: [leaf2, h1], ports: [swp3, eth1]}\n  - {ends: [leaf2, spine1], ports: [swp1, swp8]}\n")
	for _, name := range []string{"leaf1", "leaf2"} {
		got, err := FRR(g, node(t, g, name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"  redistribute kernel route-map weft-shared", "ip prefix-list weft-shared permit 192.168.1.66/32", " match ip address prefix-list weft-shared"} {
			if strings.Count(got, line+"\n") != 1 {
				t.Errorf("%s: not one %q in\n%s", name, line, got)
			}
		}
		if err := frr.Available(); err != nil {
			t.Log(err)
		} else if err := frr.CheckConfig(got); err != nil {
			t.Error(err)
		}
	}
	if got, _ := FRR(g, node(t, g, "spine1"), Options{}); strings.Contains(got, "weft-shared") {
		t.Error(got)
	}
}

func TestFRR_errors(t *testing.T) {
	g := parse(t, text)
	for name, want := range map[string]string{"h1": "h1 is a host", "leaf2": "leaf2 has no AS"} {
		if _, err := FRR(g, node(t, g, name), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	g = parse(t, strings.Replace(text, ", ports: [swp1, swp7]", "", 1))
	if _, err := FRR(g, node(t, g, "leaf1"), Options{}); err == nil || !strings.Contains(err.Error(), "the port of leaf1 to spine1 has no name") {
		t.Error(err)
	}
	g = parse(t, strings.Replace(text, ", as: 65001", "", 1))
	if _, err := FRR(g, node(t, g, "leaf1"), Options{}); err == nil || !strings.Contains(err.Error(), "spine1 has no AS") {
		t.Error(err)
	}
}

// A switch with SIDs announces its locator.
func TestFRR_locator(t *testing.T) {
	g := parse(t, strings.Replace(text, "as: 65001}", `as: 65001, sids: {node: "fcbb:bbbb:1::/48"}}`, 1))
	got, err := FRR(g, node(t, g, "spine1"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"   locator weft\n    prefix fcbb:bbbb:1::/48 func-bits 16\n   exit\n", "  network fcbb:bbbb:1::/48\n"} {
		if strings.Count(got, line) != 1 {
			t.Errorf("not one %q in\n%s", line, got)
		}
	}
	if err := frr.Available(); err != nil {
		t.Log(err)
	} else if err := frr.CheckConfig(got); err != nil {
		t.Error(err)
	}
	static := strings.Join(StaticSIDs(g, node(t, g, "spine1")), "\n")
	for _, line := range []string{"   sid fcbb:bbbb:1::/48 locator weft behavior uN", "   sid fcbb:bbbb:1:fe04::/64 locator weft behavior uDT4 vrf default",
		"   sid fcbb:bbbb:1:fe06::/64 locator weft behavior uDT6 vrf default"} {
		if !strings.Contains(static, line) {
			t.Errorf("no %q in\n%s", line, static)
		}
	}
	if got, _ := FRR(g, node(t, g, "leaf1"), Options{}); strings.Contains(got, "fcbb") || StaticSIDs(g, node(t, g, "leaf1")) != nil {
		t.Error(got)
	}
}
