package bgp

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/topology"
	"weft/topology/graph"
)

const dual = `nodes:
  h1: {addresses: [192.168.1.2, "2001:db8:1::2"]}
  leaf1: {tier: 1, prefixes: [192.168.1.0/24, "2001:db8:1::/64"]}
  leaf2: {tier: 1, prefixes: [192.168.2.0/24, "2001:db8:2::/64"]}
  leaf3: {tier: 1, prefixes: [192.168.3.0/24, "2001:db8:3::/64"]}
  spine1: {tier: 2, addresses: [172.16.0.1, "2001:db8:ffff::1"]}
  spine2: {tier: 2, addresses: [172.16.0.2, "2001:db8:ffff::2"]}
links:
  - {ends: [h1, leaf1]}
  - {ends: [leaf1, spine1]}
  - {ends: [leaf1, spine2]}
  - {ends: [leaf2, spine1]}
  - {ends: [leaf2, spine2]}
  - {ends: [leaf3, spine1]}
  - {ends: [leaf3, spine2]}
`

// viewsOf is a graph's text as the host sees it, with changes to the text.
func viewsOf(t *testing.T, changes ...string) Views {
	t.Helper()
	text := dual
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("no %q", changes[i])
		}
		text = strings.Replace(text, changes[i], changes[i+1], 1)
	}
	g, err := graph.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := ViewsOf(g, []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.168.1.2"), netip.MustParseAddr("2001:db8:1::2")})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestViewsOf(t *testing.T) {
	v := viewsOf(t)
	if v.Fabric == nil || v.Fabric6 == nil || !v.Fabric.Alike(v.Fabric6) || !v.Fabric6.Node(0).Addr.Is6() {
		t.Fatalf("%+v", v)
	}
	if v := viewsOf(t, `, "2001:db8:ffff::2"`, ""); v.Fabric == nil || v.Fabric6 != nil {
		t.Errorf("a spine without IPv6: %+v", v)
	}
	g, _ := graph.Parse([]byte(dual))
	if _, err := ViewsOf(g, []netip.Addr{netip.MustParseAddr("2001:db8:1::2")}); err == nil || !strings.Contains(err.Error(), "IPv4") {
		t.Errorf("without IPv4: %v", err)
	}
}

func TestViews_within(t *testing.T) {
	const link = "  - {ends: [leaf2, spine2]}\n"
	names := func(top *topology.Topology) (list []string) {
		if top == nil {
			return []string{"none"}
		}
		for _, l := range top.Down() {
			list = append(list, top.LinkName(l))
		}
		return list
	}
	base := viewsOf(t)
	for _, c := range []struct {
		name        string
		now         Views
		want, want6 []string
		grown       bool
	}{
		{"the same", viewsOf(t), nil, nil, false},
		{"a link less", viewsOf(t, link, ""), []string{"leaf2-spine2"}, []string{"leaf2-spine2"}, false},
		{"a link less of IPv6", Views{base.Fabric, viewsOf(t, link, "").Fabric6}, nil, []string{"leaf2-spine2"}, false},
		{"IPv6 gone", Views{Fabric: base.Fabric}, nil, []string{"none"}, true},
		{"a rack more", viewsOf(t, link, link+"  - {ends: [leaf4, spine2]}\n", "links:", "  leaf4: {tier: 1, prefixes: [192.168.4.0/24]}\nlinks:"), nil, nil, true},
	} {
		left, next, grown := base.Within(c.now)
		if grown == (next == base) {
			t.Errorf("%s: grown is %t, but to go by later is %v", c.name, grown, next)
		}
		if got, got6 := names(left.Fabric), names(left.Fabric6); !slices.Equal(got, c.want) || !slices.Equal(got6, c.want6) || grown != c.grown {
			t.Errorf("%s: down are %v, of IPv6 %v, grown %t", c.name, got, got6, grown)
		}
	}
}

func TestGrowth(t *testing.T) {
	one, two := viewsOf(t), viewsOf(t)
	now := time.Unix(1000, 0)
	var g Growth
	if _, ok := g.Take(now); ok || !g.Due().IsZero() {
		t.Error("something is held back at the beginning")
	}
	g.Hear(now, one, true)
	if _, ok := g.Take(now.Add(GrowAfter - 1)); ok {
		t.Error("it is not held back")
	}
	g.Hear(now.Add(GrowAfter/2), two, true)
	if !g.Due().Equal(now.Add(GrowAfter)) {
		t.Error("news in a row wait for ever")
	}
	if v, ok := g.Take(now.Add(GrowAfter)); !ok || v != two {
		t.Error("the latest is not what is taken")
	}
	now = now.Add(GrowMost + 2*GrowAfter)
	g.Hear(now, one, true)
	g.Hear(now, one, false)
	if _, ok := g.Take(now.Add(GrowAfter)); ok {
		t.Error("what has gone again is taken")
	}
}

// Addresses of bridges for containers, which the kernel may list first, are not the ones that a
// host is known by in the fabric.
func TestViewsOf_bridges(t *testing.T) {
	for name, h1 := range map[string]string{
		"heard":  `h1: {addresses: [172.17.0.1, 192.168.1.2, "fd00:244:1::1", "2001:db8:1::2"]}`,
		"behind": `h1: {addresses: [192.168.1.2, "2001:db8:1::2"], prefixes: [172.17.0.0/16, "fd00:244:1::/64"]}`,
	} {
		g, err := graph.Parse([]byte(strings.Replace(dual, `h1: {addresses: [192.168.1.2, "2001:db8:1::2"]}`, h1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		var own []netip.Addr
		for _, a := range []string{"fd00:244:1::1", "172.17.0.1", "2001:db8:1::2", "192.168.1.2"} {
			own = append(own, netip.MustParseAddr(a))
		}
		v, err := ViewsOf(g, own)
		if err != nil || v.Fabric6 == nil {
			t.Fatalf("%s: %+v, %v", name, v, err)
		}
		if four, six := v.Fabric.Node(0).Addr, v.Fabric6.Node(0).Addr; four != own[3] || six != own[2] {
			t.Errorf("%s: seen as %v and %v, want %v and %v", name, four, six, own[3], own[2])
		}
	}
}
