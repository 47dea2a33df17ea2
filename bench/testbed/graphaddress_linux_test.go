package testbed

import (
	"fmt"
	"strings"
	"testing"

	"weft/topology/graph"
)

// The address of a host's own stack is in its rack. Where it is not, or is missing, the error names
// the host, the address, the edge switch and its prefix, and an address that nobody has: with this
// the graph is right.
func TestEmbeddedAddress(t *testing.T) {
	const text = `nodes:
  spine: {tier: 2, addresses: [172.16.0.1]}
  leaf1: {tier: 1, addresses: [192.168.1.3], prefixes: [192.168.1.0/26]}
  leaf2: {tier: 1, prefixes: [%s]}
  h1: {tier: 0, addresses: [192.168.1.2]%s}
  h2: {tier: 0, addresses: [192.168.2.2], prefixes: [192.168.1.4/32]}
links:
  - {ends: [leaf1, spine]}
  - {ends: [leaf2, spine]}
  - {ends: [h1, leaf1]}
  - {ends: [h2, leaf2]}
`
	of := func(host, rack2, own string) error {
		g, err := graph.Parse(fmt.Appendf(nil, text, rack2, own))
		if err != nil {
			t.Fatal(err)
		}
		id, _ := g.ByName(host)
		a, err := embeddedAddress(g, id)
		if err == nil && own != "" && !strings.Contains(own, a.String()) {
			t.Errorf("%v of %s", a, own)
		}
		return err
	}
	const rack2 = "192.168.2.0/26"
	for _, c := range []struct {
		host, rack2, own string
		want             []string // in the error; nil: none
	}{
		{"h1", rack2, ", prefixes: [192.168.1.5/32]", nil},
		{"h1", rack2, ", prefixes: [192.168.1.130/32]", []string{"host h1", "192.168.1.130/32", "192.168.1.0/26", "leaf1", "such as [192.168.1.5/32]"}},
		{"h1", rack2, ", prefixes: [192.168.2.7/32]", []string{"host h1", "192.168.2.7/32", "leaf1"}},
		{"h1", rack2, "", []string{"host h1 has no address", "leaf1", "192.168.1.0/26", "such as [192.168.1.5/32]"}},
		{"h2", `"2001:db8::/64"`, "", []string{"host h2", "IPv4 prefix", "such as"}},
	} {
		err := of(c.host, c.rack2, c.own)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%+v: %v", c, err)
		}
		for _, part := range c.want {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%+v: %v", c, err)
			}
		}
	}
}
