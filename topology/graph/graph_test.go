package graph_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"weft/topology/graph"
	"weft/topology/graph/graphtest"
)

const small = `nodes:
  spine1: {tier: 2, addresses: [172.16.0.1, "2001:db8::1"], as: 65001, sids: {node: "fcbb:bb00:1::/48"}}
  spine2: {tier: 2, addresses: [172.16.0.2]}
  leaf1:  {tier: 1, addresses: [172.16.1.1], prefixes: [192.168.1.0/26, "2001:db8:1::/64"], as: 65101}
  leaf2:  {tier: 1, addresses: [172.16.1.2], prefixes: [192.168.2.0/26]}
  web1:   {addresses: [192.168.1.2, "2001:db8:1::2"], prefixes: [10.9.0.0/16]}
  db1:    {addresses: [192.168.2.2]}
links:
  - {ends: [web1, leaf1]}
  - {ends: [leaf2, db1]}
  - {ends: [leaf1, spine1], ports: [swp1, swp7], rate: 25000}
  - {ends: [leaf1, spine2], count: 2}
  - {ends: [leaf2, spine1]}
  - {ends: [leaf2, spine2]}
`

func mustParse(t *testing.T, text string) *graph.Graph {
	t.Helper()
	g, err := graph.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestParse_small(t *testing.T) {
	g := mustParse(t, small)
	if g.NumHosts() != 2 || g.NumNodes() != 6 || g.NumLinks() != 7 {
		t.Fatalf("%d hosts, %d nodes, %d links", g.NumHosts(), g.NumNodes(), g.NumLinks())
	}
	for i, name := range []string{"web1", "db1", "leaf1", "leaf2", "spine1", "spine2"} {
		if n := g.Node(graph.NodeID(i)); n.Name != name {
			t.Errorf("node %d is %s", i, n.Name)
		}
	}
	p := g.Paths(0, 1)
	var got []string
	for _, path := range p.List {
		got = append(got, fmt.Sprint(g.Node(path.Bounce).Name, path.Digits))
	}
	if fmt.Sprint(got) != "[spine1[0] spine2[1]]" {
		t.Errorf("paths %v", got)
	}
	for addr, want := range map[string]string{
		"192.168.1.2": "web1", "10.9.1.1": "web1", "192.168.1.9": "leaf1", "2001:db8:1::77": "leaf1",
		"172.16.0.2": "spine2", "192.168.1.64": "", "2001:db8:2::": "",
	} {
		id, ok := g.Behind(netip.MustParseAddr(addr))
		if ok != (want != "") || ok && g.Node(id).Name != want {
			t.Errorf("%s is behind %v, %v; want %q", addr, id, ok, want)
		}
	}
}

func TestText_isReadBack(t *testing.T) {
	for seed := range uint64(200) {
		g, err := graph.New(graphtest.Random(seed))
		if err != nil {
			t.Fatal(err)
		}
		text := g.Text()
		again, err := graph.Parse(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if !bytes.Equal(again.Text(), text) || !sameEnds(again, g) {
			t.Fatalf("seed %d: read back as\n%s\nof\n%s", seed, again.Text(), text)
		}
	}
	if text := mustParse(t, small).Text(); string(mustParse(t, string(text)).Text()) != string(text) {
		t.Errorf("%s", text)
	}
}

func TestParse_errors(t *testing.T) {
	edit := func(old, new string) string {
		if !strings.Contains(small, old) {
			t.Fatalf("%q is not there", old)
		}
		return strings.Replace(small, old, new, 1)
	}
	for _, c := range []struct{ text, want string }{
		{"", "begin with nodes:"},
		{"- a", "line 1: a graph must be keys with values: nodes, links"},
		{"hosts: {}", `line 1: a graph: unknown key "hosts"; known: nodes, links`},
		{"nodes: {a: }\nnodes: {b: }", "line 2: a graph: nodes given twice"},
		{small + "---\na: b", "there must be one document"},
		{"nodes: {h: }", "there is no switch of tier 1"},
		{edit("tier: 2, addresses: [172.16.0.2]", "tier: 2"), "line 3: switch spine2: it has no address"},
		{edit("tier: 2, addresses: [172.16.0.2]", "tier: 6, addresses: [172.16.0.2]"), `line 3: node spine2: tier: "6", must be a number from 0 to 5`},
		{edit("[172.16.0.2]", "[172.16.0.1]"), "line 2) has the address 172.16.0.1, too"},
		{edit("[172.16.0.2]", "[172.16.0.2/32]"), "line 3: node spine2: addresses:"},
		{edit("[172.16.0.2]", "172.16.0.2"), "line 3: node spine2: addresses: must be a list, in brackets"},
		{edit("[172.16.0.2]", "[224.0.0.2]"), "is no address of a single node"},
		{edit("192.168.2.0/26", "192.168.1.0/26"), "leaf1 (line 4) has the prefix 192.168.1.0/26, too"},
		{edit("192.168.2.0/26", "192.168.1.32/27"), "line 5: switch leaf2: its rack 192.168.1.32/27 lies within 192.168.1.0/26 of leaf1 (line 4)"},
		{edit("192.168.2.0/26", "192.168.2.1/26"), "must be a network such as"},
		{edit("as: 65001,", "as: 65001, prefixes: [192.168.9.0/24],"), "line 2: switch spine1: only edge switches (tier 1) have racks, and it is in tier 2"},
		{edit("as: 65001", "as: -1"), `line 2: node spine1: as: "-1", must be a number of 32 bits`},
		{edit("ends: [leaf2, spine2]", "ends: [leaf2, spine3]"), `line 14: link leaf2 to spine3: there is no node "spine3"`},
		{edit("ends: [leaf2, spine2]", "ends: [leaf2, leaf1]"), "line 14: link leaf2 to leaf1: it joins tiers 1 and 1"},
		{edit("ends: [leaf2, spine2]", "ends: [db1, spine2]"), "line 14: link db1 to spine2: it joins tiers 0 and 2"},
		{edit("ends: [leaf2, spine2]", "ends: [leaf2]"), "line 14: link: ends: must be a list of two names"},
		{edit("{ends: [leaf2, spine2]}", "{rate: 3}"), "line 14: link: ends is missing"},
		{edit("{ends: [leaf2, spine2]}", "{ends: [leaf2, spine1], ports: [swp9, swp7]}"), "line 14: link leaf2 to spine1: port swp7 of spine1 has another cable"},
		{edit("count: 2", "count: 2, ports: [a, b]"), "line 12: link leaf1 to spine2: 2 links cannot have the same ports"},
		{edit("count: 2", "count: 0"), "line 12: link: count: 0, must be at least 1"},
		{edit("rate: 25000", "rate: NaN"), `line 11: link: rate: "NaN", must be a rate in Mbit/s`},
		{edit("  - {ends: [web1, leaf1]}\n", ""), "line 6: host web1: it has no link"},
		{small + "  - {ends: [leaf2, spine2], speed: 3}\n", `line 15: a link: unknown key "speed"`},
		{edit("web1:  ", "'a b': "), `line 6: node "a b": a name must not be empty`},
	} {
		_, err := graph.Parse([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

// Two edge switches that serve one host may announce one rack.
func TestParse_twoEdgeSwitchesOfARack(t *testing.T) {
	text := strings.Replace(small, "192.168.2.0/26", "192.168.1.0/26", 1) + "  - {ends: [web1, leaf2]}\n"
	g := mustParse(t, text)
	if edges := g.Edges(0); len(edges) != 2 {
		t.Errorf("web1 has edge switches %v", edges)
	}
	if p := g.Paths(0, 1); !p.Direct || len(p.List) > 0 {
		t.Errorf("%+v", p)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	for seed := range uint64(4) {
		if g, err := graph.New(graphtest.Random(seed)); err == nil {
			f.Add(g.Text())
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := graph.Parse(text)
		if err != nil {
			return
		}
		again, err := graph.Parse(g.Text())
		if err != nil {
			t.Fatalf("%v\n%s", err, g.Text())
		}
		if !bytes.Equal(again.Text(), g.Text()) {
			t.Fatalf("%s\nis read back as\n%s", g.Text(), again.Text())
		}
		if n := g.NumHosts(); n > 1 && n < 100 && g.NumLinks() < 200 {
			p := g.Paths(0, graph.NodeID(n-1))
			p.Live(nil)
		}
	})
}

func sameEnds(a, b *graph.Graph) bool {
	for l := range min(a.NumLinks(), b.NumLinks()) {
		a1, a2 := a.Ends(graph.LinkID(l))
		if b1, b2 := b.Ends(graph.LinkID(l)); a1 != b1 || a2 != b2 {
			return false
		}
	}
	return a.NumLinks() == b.NumLinks()
}
