package fabric

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weft/topology/graph"
)

// Two edge switches share a rack with a host at both; another host has a second address, and
// a prefix behind it.
const dual = `nodes:
  s1: {tier: 2, addresses: [172.16.0.1, 172.16.0.9, "2001:db8:f::1"]}
  l1: {tier: 1, prefixes: [192.168.1.64/26, "2001:db8:1::/64"]}
  l2: {tier: 1, addresses: [172.16.1.2], prefixes: [192.168.1.64/26, "2001:db8:1::/64"]}
  h1: {addresses: [192.168.1.65, "2001:db8:1::2"]}
  h2: {addresses: [192.168.1.67, 192.168.1.68], prefixes: [10.1.0.0/24]}
links:
  - {ends: [h1, l1], ports: [eth1, swp1]}
  - {ends: [h1, l2], ports: [eth2, swp1]}
  - {ends: [h2, l1], ports: [eth1, swp2]}
  - {ends: [l1, s1], ports: [swp3, swp1]}
  - {ends: [l2, s1], ports: [swp3, swp2]}
`

func planOf(t *testing.T, text, name string) NodePlan {
	t.Helper()
	g, err := graph.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	id, ok := g.ByName(name)
	if !ok {
		t.Fatalf("no %s", name)
	}
	p, err := PlanGraph(g, id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlanGraph_commands(t *testing.T) {
	for name, want := range map[string][]string{
		"h1": {"ip address replace 192.168.1.65/32 dev lo", "ip -6 address replace 2001:db8:1::2/128 dev lo nodad",
			"ip route replace default proto 87 src 192.168.1.65 nexthop via 192.168.1.66 dev eth1 onlink nexthop via 192.168.1.69 dev eth2 onlink",
			"ip route replace 192.168.1.69/32 via 192.168.1.69 dev eth2 onlink proto 87 src 192.168.1.65",
			"ip -6 route replace default proto 87 src 2001:db8:1::2 nexthop via fe80::7765:6674:0:3 dev eth1 onlink nexthop via fe80::7765:6674:0:4 dev eth2 onlink",
			"ip -6 address replace fe80::7765:6674:0:1/64 dev eth2 nodad"},
		"h2": {"ip address replace 192.168.1.68/32 dev eth1", "ip route replace default via 192.168.1.66 dev eth1 onlink proto 87 src 192.168.1.67"},
		"l1": {"ip address replace 192.168.1.66/32 dev lo", "ip -6 address replace 2001:db8:1::1/128 dev lo nodad",
			"ip route replace unreachable 192.168.1.64/26 proto 87 metric 4096",
			"ip route replace 192.168.1.65/32 via 192.168.1.65 dev swp1 onlink proto 87",
			"ip route replace 192.168.1.68/32 via 192.168.1.67 dev swp2 onlink proto 87",
			"ip route replace 10.1.0.0/24 via 192.168.1.67 dev swp2 onlink proto 87",
			"ip -6 route replace 2001:db8:1::2/128 via fe80::7765:6674:0:1 dev swp1 onlink proto 87", "ip -6 address replace fe80::7765:6674:0:3/64 dev swp1 nodad"},
		"s1": {"ip address replace 172.16.0.9/32 dev lo", "ip -6 address replace 2001:db8:f::1/128 dev lo nodad",
			"ip link add name weft-decap0 type ipip local 172.16.0.1 remote any ttl 64", "sysctl -w net.ipv6.conf.all.forwarding=1",
			"ip link add name weft-six-in0 type sit local 172.16.0.1 remote any ttl 64",
			"ip link add name weft-decap1 type ip6tnl local 2001:db8:f::1 remote any mode any encaplimit none", "ip link set weft-decap1 up"},
	} {
		p := planOf(t, dual, name)
		got := p.Commands()
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("%s: no %q in\n%s", name, line, strings.Join(got, "\n"))
			}
		}
		for _, line := range got {
			if strings.Contains(line, "invalid") {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
}

// A switch's gateway is the address that it says is its own, or one that nobody has.
func TestGateway(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"", "", "192.168.1.66"},
		{"l1: {tier: 1,", "l1: {tier: 1, addresses: [192.168.1.126],", "192.168.1.126"},
	} {
		g, err := graph.Parse([]byte(strings.Replace(dual, c.old, c.new, 1)))
		if err != nil {
			t.Fatal(err)
		}
		id, _ := g.ByName("l1")
		if a, ok := Gateway(g, id, netip.MustParsePrefix("192.168.1.64/26")); !ok || a.String() != c.want {
			t.Errorf("%v, want %s", a, c.want)
		}
	}
	full := strings.ReplaceAll(strings.ReplaceAll(dual, "192.168.1.64/26", "192.168.1.64/31"), "192.168.1.67, ", "")
	g, err := graph.Parse([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	id, _ := g.ByName("l1")
	if _, err := PlanGraph(g, id); err == nil || !strings.Contains(err.Error(), "rack 192.168.1.64/31 of l1 has no address left") {
		t.Error(err)
	}
}

// A switch takes packets out at its SIDs by each port, at all others as long as one is there.
func TestPlanGraph_operatorsSIDs(t *testing.T) {
	with := func(sids string) string {
		return strings.Replace(dual, `"2001:db8:f::1"]}`, `"2001:db8:f::1"], sids: {`+sids+`}}`, 1)
	}
	p := planOf(t, with(`node: "fcbb:bbbb:1::/48"`), "s1")
	got := p.Commands()
	for i, port := range []string{"swp1", "swp2"} {
		for _, line := range []string{
			"ip -6 route replace fcbb:bbbb:1::/48 encap seg6local action End flavors next-csid lblen 32 nflen 16 count",
			"ip -6 route replace fcbb:bbbb:1:fe04::/64 encap seg6local action End.DX4 nh4 0.0.0.0 count",
			"ip -6 route replace fcbb:bbbb:1:fe06::/64 encap seg6local action End.DT6 table main count",
		} {
			if line += fmt.Sprintf(" dev %s proto 87 metric %d", port, 1024+i); !slices.Contains(got, line) {
				t.Errorf("no %q in\n%s", line, strings.Join(got, "\n"))
			}
		}
	}
	if less := p.Without("swp1"); len(less.Local) != 3 || less.Local[0].Port != "swp2" {
		t.Errorf("without swp1: %+v", less.Local)
	}
	g, err := graph.Parse([]byte(with(`node: "fcbb:bbbb:1::/48", decap4: "fcbb:bbbb:1:1::/64", decap6: "fcbb:bbbb:1:1::/64"`)))
	if err != nil {
		t.Fatal(err)
	}
	id, _ := g.ByName("s1")
	if _, err := PlanGraph(g, id); err == nil || !strings.Contains(err.Error(), "switch s1: sids: decap4 and decap6 are one SID") {
		t.Error(err)
	}
}
