package discover

import (
	"strings"
	"testing"

	"weft/topology/graph"
)

const clos = `name: clos
topology:
  defaults: {kind: nokia_srlinux}
  nodes:
    leaf1: {group: leaf}
    leaf2:
    spine1: {labels: {weft-tier: "2"}}
    spine2: {kind: linux, image: frr}
    client1: {kind: linux}
    client2: {kind: linux}
  links:
    - endpoints: ["leaf1:e1-49", "spine1:e1-1"]
    - endpoints: ["leaf1:e1-50", "spine2:e1-1"]
    - endpoints: ["leaf2:e1-49", "spine1:e1-2"]
    - type: veth
      endpoints:
        - {node: leaf2, interface: e1-50}
        - {node: spine2, interface: e1-2}
    - endpoints: ["client1:eth1", "leaf1:e1-1"]
    - endpoints: ["client2:eth1", "leaf2:e1-1"]
`

func TestContainerlab_clos(t *testing.T) {
	f, err := Containerlab([]byte(clos))
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(f.Spec)
	if err != nil {
		t.Fatal(err)
	}
	want := `nodes:
  client1: {addresses: [10.0.0.2]}
  client2: {addresses: [10.0.1.2]}
  leaf1: {tier: 1, addresses: [172.16.0.1], prefixes: [10.0.0.0/24]}
  leaf2: {tier: 1, addresses: [172.16.0.2], prefixes: [10.0.1.0/24]}
  spine1: {tier: 2, addresses: [172.17.0.1]}
  spine2: {tier: 2, addresses: [172.17.0.2]}
links:
  - {ends: [client1, leaf1], ports: [eth1, e1-1]}
  - {ends: [client2, leaf2], ports: [eth1, e1-1]}
  - {ends: [leaf1, spine1], ports: [e1-49, e1-1]}
  - {ends: [leaf1, spine2], ports: [e1-50, e1-1]}
  - {ends: [leaf2, spine1], ports: [e1-49, e1-2]}
  - {ends: [leaf2, spine2], ports: [e1-50, e1-2]}
`
	if got := string(g.Text()); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	guesses := strings.Join(f.Guesses, "\n")
	for _, want := range []string{"tier 0 of client1, client2", "tier 1 of leaf2", "tier 2 of spine2",
		"addresses of leaf1, leaf2, spine1, spine2", "racks of leaf1, leaf2", "addresses of client1, client2"} {
		if !strings.Contains(guesses, want) {
			t.Errorf("guesses %q, want one of %q", guesses, want)
		}
	}
	if strings.Contains(guesses, "tier 1 of leaf1") || strings.Contains(guesses, "spine1, spine2\ntier") {
		t.Errorf("%q is said, not guessed", guesses)
	}
}

// Labels say what there is no word for, and are refused where they are wrong.
func TestContainerlab_labels(t *testing.T) {
	text := strings.Replace(clos, `{labels: {weft-tier: "2"}}`,
		`{labels: {weft-tier: "2", weft-as: "4200000001", weft-addresses: "192.0.2.1, 2001:db8::1", weft-sids: "fc00::/48"}}`, 1)
	text = strings.Replace(text, "    client1: {kind: linux}", `    client1: {kind: linux, labels: {weft-prefixes: "192.0.2.64/28"}}`, 1)
	text = strings.Replace(text, `"spine1:e1-1"]`, `"spine1:e1-1"]
      labels: {weft-rate: "2.5"}`, 1)
	f, err := Containerlab([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(f.Spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`  spine1: {tier: 2, addresses: [192.0.2.1, "2001:db8::1"], as: 4200000001, sids: {node: "fc00::/48"}}`,
		"  client1: {addresses: [10.0.0.2], prefixes: [192.0.2.64/28]}", "ports: [e1-49, e1-1], rate: 2.5}"} {
		if !strings.Contains(string(g.Text()), want) {
			t.Errorf("no %q in\n%s", want, g.Text())
		}
	}
	for old, want := range map[string]string{
		`weft-as: "4200000001"`: "line 7: node spine1: label weft-as", "192.0.2.1, 2001": "label weft-addresses", "fc00::/48": "label weft-sids",
		"192.0.2.64/28": "label weft-prefixes", `weft-rate: "2.5"`: "label weft-rate"} {
		key, _, _ := strings.Cut(old, `"`)
		bad := strings.Replace(text, old, "no", 1)
		if key != old {
			bad = strings.Replace(text, old, key+`"-1"`, 1)
		}
		if _, err := Containerlab([]byte(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", bad, err, want)
		}
	}
}

// Without a word anywhere, nodes with one link are hosts.
func TestContainerlab_namesSayNothing(t *testing.T) {
	text := clos
	for old, new := range map[string]string{"leaf1": "a", "leaf2": "b", "spine1": "c", "spine2": "d", "client1": "x", "client2": "y",
		", group: leaf": "", "{group: leaf}": "", `{labels: {weft-tier: "2"}}`: ""} {
		text = strings.ReplaceAll(text, old, new)
	}
	f, err := Containerlab([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(f.Spec)
	if err != nil {
		t.Fatal(err)
	}
	tiers := ""
	for id := range g.NumNodes() {
		n := g.Node(graph.NodeID(id))
		tiers += n.Name + string(rune('0'+n.Tier))
	}
	if tiers != "x0y0a1b1c2d2" {
		t.Error(tiers)
	}
}

func TestHint(t *testing.T) {
	for name, want := range map[string]int{
		"leaf1": 1, "dc1-leaf-3": 1, "spine2": 2, "superspine1": 3, "super-spine-1": 3, "Core1": 3, "tor7": 1, "storage1": unknown,
		"score": unknown, "gpu12": 0, "client1": 0, "r1": unknown, "": unknown, "super": unknown,
	} {
		if got := hint(name); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}

// A node in no tier is refused by name.
func TestContainerlab_wiredToNothing(t *testing.T) {
	f, err := Containerlab([]byte("topology: {nodes: {leaf1: , x: }}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := graph.New(f.Spec); err == nil || !strings.Contains(err.Error(), "node x: tier -1") {
		t.Error(err)
	}
}

func TestContainerlab_errors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "topology.nodes is missing"},
		{"a: [", "containerlab: yaml:"},
		{"topology: {nodes: {a: 3}}", "containerlab: node a:"},
		{"topology: {nodes: {a: {labels: {weft-tier: x}}}}", `line 1: node a: label weft-tier: "x", must be a number from 0 to 5`},
		{"topology:\n  nodes: {a: }\n  links:\n    - endpoints: [a]", "line 4: a link has 1 endpoints"},
	} {
		_, err := Containerlab([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

func FuzzContainerlab(f *testing.F) {
	f.Add([]byte(clos))
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := Containerlab(text)
		if err != nil {
			return
		}
		if g, err := graph.New(found.Spec); err == nil {
			if _, err := graph.Parse(g.Text()); err != nil {
				t.Fatalf("%v\n%s", err, g.Text())
			}
		}
	})
}
