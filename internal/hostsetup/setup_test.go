package hostsetup

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weft/encap"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

func prefixes(list ...string) (p []netip.Prefix) {
	for _, s := range list {
		p = append(p, netip.MustParsePrefix(s))
	}
	return p
}

// gatewayOptions are those of host 10.0.0.2 in a fat-tree of four-port switches.
func gatewayOptions() Options {
	return Options{
		Address: netip.MustParseAddr("10.0.0.2"), Uplink: "p0", Gateway: netip.MustParseAddr("10.0.0.1"), MTU: 1480,
		Fabric: prefixes("10.0.0.0/14"), Rack: prefixes("10.0.0.0/24"), TUN: "weft0",
	}
}

func tunnelOptions() Options {
	return Options{
		TUN: "weft0", Tunnel: prefixes("10.9.0.0/24", "fd00:9::/64"),
		Endpoints: []netip.AddrPort{netip.MustParseAddrPort("10.9.0.1:5740"), netip.MustParseAddrPort("[fd00:9::1]:5741")},
	}
}

// sixOptions are those of a host of 2001:db8:0:1::/64 behind a switch that it knows by its
// link-local address.
func sixOptions() *Six {
	return &Six{Gateway: netip.MustParseAddr("fe80::1"), MTU: 1460,
		Fabric: prefixes("2001:db8:0:1::/64", "2001:db8:0:2::/64", "2001:db8:0:3::/64"), Rack: prefixes("2001:db8:0:1::/64")}
}

func TestPlanHost_commands(t *testing.T) {
	offload := gatewayOptions()
	offload.TUN = ""
	both := offload
	both.Six, both.Narrow = sixOptions(), map[netip.Prefix]int{netip.MustParsePrefix("2001:db8:0:2::/64"): 1300}
	gateway6 := gatewayOptions()
	gateway6.TUN6, gateway6.TUNMTU = true, 1480
	carries6 := gateway6
	carries6.Six, carries6.Narrow = both.Six, both.Narrow
	strict := gatewayOptions()
	strict.Uplink, strict.Strict = "eth0.100", []string{"eth0.100"}
	strictAll := gatewayOptions()
	strictAll.FilterAll, strictAll.Strict = 1, []string{"p0"}
	looseAll := gatewayOptions()
	looseAll.FilterAll = 2
	onLink := offload
	onLink.Gateway, onLink.Rack = netip.Addr{}, nil
	labelled := gatewayOptions()
	labelled.Carrier, labelled.MTU, labelled.Advertised = encap.CarrierSRv6, 1460, true
	toSIDs := gatewayOptions()
	toSIDs.Carrier, toSIDs.SIDs, toSIDs.MTU, toSIDs.Gateway = encap.CarrierSRv6, true, 1460, netip.Addr{}
	labelledOffload := offload
	labelledOffload.Carrier = encap.CarrierSRv6
	several := both
	several.Others = []Way{{Device: "p1", Gateway: netip.MustParseAddr("10.0.1.1"), Gateway6: netip.MustParseAddr("fe80::2")}}
	partly := both
	partly.Others = []Way{{Device: "p1", Gateway: netip.MustParseAddr("10.0.1.1")}}
	fabricOut := "ip route replace 10.0.0.0/14 table 5741 proto 87 via 10.0.0.1 dev p0 onlink src 10.0.0.2 mtu 1480"
	for _, c := range []struct {
		name  string
		o     Options
		whole bool
		want  []string
	}{
		{"several uplinks", several, false, []string{
			"sysctl -w net.ipv4.conf.p0.ignore_routes_with_linkdown=1", "sysctl -w net.ipv6.conf.p1.ignore_routes_with_linkdown=1",
			"ip route replace 10.0.0.0/14 table 5741 proto 87 src 10.0.0.2 mtu 1480 nexthop via 10.0.0.1 dev p0 onlink nexthop via 10.0.1.1 dev p1 onlink",
			"ip route replace 2001:db8:0:3::/64 table 5741 proto 87 mtu 1460 nexthop via fe80::1 dev p0 onlink nexthop via fe80::2 dev p1 onlink",
		}},
		{"several uplinks, of IPv6 one known", partly, false, []string{
			"ip route replace 10.0.0.0/14 table 5741 proto 87 src 10.0.0.2 mtu 1480 nexthop via 10.0.0.1 dev p0 onlink nexthop via 10.0.1.1 dev p1 onlink",
			"ip route replace 2001:db8:0:3::/64 table 5741 proto 87 via fe80::1 dev p0 onlink mtu 1460",
		}},
		{"gateway", gatewayOptions(), true, []string{
			"sysctl -w net.ipv4.conf.weft0.rp_filter=0",
			"sysctl -w net.ipv4.conf.weft0.accept_local=1",
			"sysctl -w net.ipv4.conf.weft0.forwarding=1",
			"ip route replace 10.0.0.0/14 table 5740 proto 87 dev weft0 src 10.0.0.2 mtu 1480",
			"ip route replace throw 10.0.0.0/24 table 5740 proto 87",
			fabricOut,
			"ip route replace throw 10.0.0.0/24 table 5741 proto 87",
			"ip rule add pref 5739 iif weft0 protocol 87 lookup 5741",
			"ip rule add pref 5741 iif lo protocol 87 lookup 5741",
			"ip rule add pref 5740 iif lo ipproto tcp protocol 87 lookup 5740",
		}},
		{"gateway with IPv6", gateway6, true, []string{
			"sysctl -w net.ipv4.conf.weft0.rp_filter=0",
			"sysctl -w net.ipv4.conf.weft0.accept_local=1",
			"sysctl -w net.ipv4.conf.weft0.forwarding=1",
			"sysctl -w net.ipv6.conf.weft0.disable_ipv6=0",
			"ip route replace 10.0.0.0/14 table 5740 proto 87 dev weft0 src 10.0.0.2 mtu 1480",
			"ip route replace throw 10.0.0.0/24 table 5740 proto 87",
			fabricOut,
			"ip route replace throw 10.0.0.0/24 table 5741 proto 87",
			"ip rule add pref 5739 iif weft0 protocol 87 lookup 5741",
			"ip rule add pref 5741 iif lo protocol 87 lookup 5741",
			"ip rule add pref 5740 iif lo ipproto tcp protocol 87 lookup 5740",
		}},
		{"offload", offload, true, []string{
			fabricOut,
			"ip route replace throw 10.0.0.0/24 table 5741 proto 87",
			"ip rule add pref 5741 iif lo protocol 87 lookup 5741",
		}},
		{"both families", both, true, []string{
			fabricOut,
			"ip route replace throw 10.0.0.0/24 table 5741 proto 87",
			"ip route replace 2001:db8:0:2::/64 table 5741 proto 87 via fe80::1 dev p0 onlink mtu 1300",
			"ip route replace 2001:db8:0:3::/64 table 5741 proto 87 via fe80::1 dev p0 onlink mtu 1460",
			"ip route replace throw 2001:db8:0:1::/64 table 5741 proto 87",
			"ip rule add pref 5741 iif lo protocol 87 lookup 5741",
			"ip -6 rule add pref 5741 iif lo protocol 87 lookup 5741",
		}},
		{"gateway that carries IPv6", carries6, false, []string{
			"sysctl -w net.ipv6.conf.weft0.disable_ipv6=0",
			"ip route replace 2001:db8:0:2::/64 table 5740 proto 87 dev weft0 mtu 1300",
			"ip route replace 2001:db8:0:3::/64 table 5740 proto 87 dev weft0 mtu 1460",
			"ip route replace throw 2001:db8:0:1::/64 table 5740 proto 87",
			"ip route replace 2001:db8:0:2::/64 table 5741 proto 87 via fe80::1 dev p0 onlink mtu 1300",
			"ip -6 rule add pref 5741 iif lo protocol 87 lookup 5741",
			"ip -6 rule add pref 5740 iif lo ipproto tcp protocol 87 lookup 5740",
		}},
		{"labels", labelled, true, []string{
			"sysctl -w net.ipv4.conf.weft0.rp_filter=0",
			"sysctl -w net.ipv4.conf.weft0.accept_local=1",
			"sysctl -w net.ipv4.conf.weft0.forwarding=1",
			"sysctl -w net.ipv6.conf.p0.accept_ra=2",
			"sysctl -w net.ipv6.conf.all.forwarding=1",
			"ip address replace fe80::7765:6674:a00:2/64 dev p0 nodad",
			"ip route replace 10.0.0.0/14 table 5740 proto 87 dev weft0 src 10.0.0.2 mtu 1460",
			"ip route replace throw 10.0.0.0/24 table 5740 proto 87",
			"ip route replace 10.0.0.0/14 table 5741 proto 87 via 10.0.0.1 dev p0 onlink src 10.0.0.2 mtu 1460",
			"ip route replace throw 10.0.0.0/24 table 5741 proto 87",
			"ip route replace 5f00::/16 table 5741 proto 87 via fe80::7765:6674:a00:1 dev p0 onlink",
			"ip rule add pref 5739 iif weft0 protocol 87 lookup 5741",
			"ip rule add pref 5741 iif lo protocol 87 lookup 5741",
			"ip -6 rule add pref 5739 iif weft0 protocol 87 lookup 5741",
			"ip rule add pref 5740 iif lo ipproto tcp protocol 87 lookup 5740",
		}},
		{"SIDs of a graph", toSIDs, true, []string{
			"sysctl -w net.ipv4.conf.weft0.rp_filter=0",
			"sysctl -w net.ipv4.conf.weft0.accept_local=1",
			"sysctl -w net.ipv4.conf.weft0.forwarding=1",
			"ip route replace 10.0.0.0/14 table 5740 proto 87 dev weft0 src 10.0.0.2 mtu 1460",
			"ip route replace throw 10.0.0.0/24 table 5740 proto 87",
			"ip route replace 10.0.0.0/14 table 5741 proto 87 dev p0 src 10.0.0.2 mtu 1460",
			"ip route replace throw 10.0.0.0/24 table 5741 proto 87",
			"ip rule add pref 5739 iif weft0 protocol 87 lookup 5741",
			"ip rule add pref 5741 iif lo protocol 87 lookup 5741",
			"ip rule add pref 5740 iif lo ipproto tcp protocol 87 lookup 5740",
		}},
		{"labels by the uplink's program", labelledOffload, true, []string{
			fabricOut,
			"ip route replace throw 10.0.0.0/24 table 5741 proto 87",
			"ip rule add pref 5741 iif lo protocol 87 lookup 5741",
		}},
		{"no gateway, no rack", onLink, true, []string{
			"ip route replace 10.0.0.0/14 table 5741 proto 87 dev p0 src 10.0.0.2 mtu 1480",
			"ip rule add pref 5741 iif lo protocol 87 lookup 5741",
		}},
		{"strict uplink", strict, false, []string{"sysctl -w net.ipv4.conf.eth0/100.rp_filter=2", "sysctl -w net.ipv4.conf.weft0.rp_filter=0"}},
		{"strict everywhere", strictAll, false, []string{"ip address replace 192.0.0.8/32 dev weft0",
			"sysctl -w net.ipv4.conf.p0.rp_filter=2", "sysctl -w net.ipv4.conf.weft0.rp_filter=2"}},
		{"loose everywhere", looseAll, false, []string{"ip address replace 192.0.0.8/32 dev weft0", "sysctl -w net.ipv4.conf.weft0.rp_filter=2"}},
		{"tunnel", tunnelOptions(), true, []string{
			"sysctl -w net.ipv4.conf.weft0.rp_filter=0",
			"ip route replace 10.9.0.0/24 table 5740 proto 87 dev weft0",
			"ip route replace fd00:9::/64 table 5740 proto 87 dev weft0",
			"ip rule add pref 5742 protocol 87 nop",
			"ip rule add pref 5738 iif lo to 10.9.0.1/32 ipproto udp dport 5740 protocol 87 goto 5742",
			"ip -6 rule add pref 5742 protocol 87 nop",
			"ip -6 rule add pref 5738 iif lo to fd00:9::1/128 ipproto udp dport 5741 protocol 87 goto 5742",
			"ip rule add pref 5740 iif lo protocol 87 lookup 5740",
			"ip -6 rule add pref 5740 iif lo protocol 87 lookup 5740",
		}},
	} {
		p, err := PlanFor(c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := p.Commands()
		if c.whole && !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant:\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		for _, w := range c.want {
			if !slices.Contains(got, w) {
				t.Errorf("%s: no %q in:\n%s", c.name, w, strings.Join(got, "\n"))
			}
		}
	}
}

func TestPlanHost_bad(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"neither Fabric nor Tunnel": func(o *Options) { o.Fabric = nil },
		"Uplink is missing":         func(o *Options) { o.Uplink = "" },
		"TUN is missing":            func(o *Options) { o.TUN, o.Tunnel = "", prefixes("10.9.0.0/24") },
		"MTU is 100 bytes":          func(o *Options) { o.MTU = 100 },
		"must be 1240 or more":      func(o *Options) { o.Carrier, o.MTU = encap.CarrierSRv6, 1239 },
		"Six has 0 prefixes":        func(o *Options) { o.Six = &Six{MTU: 1460} },
		"an MTU of 1279 bytes": func(o *Options) {
			o.Six = sixOptions()
			o.Six.MTU = 1279
		},
		"TUNMTU is 1279":        func(o *Options) { o.TUN6, o.TUNMTU = true, 1279 },
		"must be 556 or more":   func(o *Options) { o.MTU = 555 },
		"Carrier is mpls":       func(o *Options) { o.Carrier = encap.CarrierMPLS },
		"Gateway is invalid IP": func(o *Options) { o.Carrier, o.Gateway = encap.CarrierSRv6, netip.Addr{} },
		`device "../x"`:         func(o *Options) { o.TUN = "../x" },
		`device ".."`:           func(o *Options) { o.Uplink = ".." },
		"write 10.9.0.0/24":     func(o *Options) { o.Tunnel = prefixes("10.9.0.1/24") },
	} {
		o := gatewayOptions()
		change(&o)
		if _, err := PlanFor(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func TestHostPrefixes_holdHostsAndNothingElse(t *testing.T) {
	for k := topology.MinFatTreeK; k <= topology.MaxFatTreeK; k += 2 {
		top := kerneltest.Topology(t, fmt.Sprintf("fat-tree:k=%d", k))
		ps := Prefixes(top)
		size := 0
		for i, p := range ps {
			size += 1 << (32 - p.Bits())
			for _, q := range ps[:i] {
				if p.Overlaps(q) {
					t.Fatalf("k=%d: %s and %s overlap", k, p, q)
				}
			}
		}
		if size != k<<16 {
			t.Errorf("k=%d: %v are %d addresses, want those of %d pods", k, ps, size, k)
		}
		for n := range top.Nodes() {
			in := slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(n.Addr) })
			if in != (n.Layer != topology.LayerCore) {
				t.Fatalf("k=%d: %s %s: in %v is %v", k, n.Layer, n.Addr, ps, in)
			}
		}
		if max := 6; len(ps) > max { // the binary digits of k ≤ 64
			t.Errorf("k=%d: %d prefixes, want at most %d", k, len(ps), max)
		}
	}
}
