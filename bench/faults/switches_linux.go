package faults

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel/disturb"
	"weft/lab"
)

const (
	strict = "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 1 > $f; done"
	loose  = "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done"
)

var cores = []string{"c1.1", "c1.2", "c2.1", "c2.2"}

var ofSwitches = []Fault{
	{Name: "switch-dead", What: "an aggregation switch is dead", Inject: failing("a0.3", lab.FailLoud),
		Cause: Cause{{"switch a0.3"}}, At: []string{"a0.3"}, Fabric: true},
	{Name: "core-dead", What: "a core switch is dead", Inject: failing("c2.1", lab.FailLoud),
		Cause: Cause{{"switch c2.1"}}, At: []string{"c2.1"}, Fabric: true},
	{Name: "mute-start", What: "a core switch does not decapsulate, from the start", Start: true, Inject: mute("c1.1"),
		Cause: Cause{{"decapsulat"}, {"outer headers off"}}, At: []string{"c1.1"}, Fabric: true},
	{Name: "mute-later", What: "a core switch stops to decapsulate", Inject: mute("c1.1"),
		Cause: Cause{{"decapsulat"}, {"outer headers off"}}, At: []string{"c1.1"}, Fabric: true},
	{Name: "mute-all", What: "all core switches stop to decapsulate", Inject: mute(cores...),
		Cause: Cause{{"decapsulat"}, {"outer headers off"}}, At: cores, Fabric: true},
	{Name: "rp-filter-switch", What: "a strict rp_filter at the aggregation switches of the pod, set later", Inject: script(strict, loose, "a0.2", "a0.3"),
		Cause: Cause{{"rp_filter"}}, At: []string{"a0.2", "a0.3"}, Fabric: true},
	{Name: "firewall-4-switch", What: "the edge switch drops protocol 4", Inject: filtering("forward", "ip protocol 4", "e0.0"),
		Cause: Cause{{"protocol 4"}}, At: []string{"e0.0"}, Fabric: true},
	{Name: "forwarding-off", What: "ip_forward is off at an aggregation switch", Inject: script("echo 0 > /proc/sys/net/ipv4/ip_forward", "echo 1 > /proc/sys/net/ipv4/ip_forward", "a0.2"),
		Cause: Cause{{"forward"}}, At: []string{"a0.2"}, Fabric: true},
	{Name: "route-wrong", What: "a core switch has a black hole in the place of the route to a pod", Inject: script("ip route add blackhole 10.3.1.3/32", "ip route del blackhole 10.3.1.3/32", "c1.2"),
		Cause: Cause{{"route"}, {"black"}}, At: []string{"c1.2"}, Fabric: true},
	{Name: "mtu-switch", What: "MTU 1300 on a link between switches, and ICMP does not arrive", Inject: narrow("a0.2", "c1.2", 1300),
		Cause: Cause{{"MTU"}}, At: []string{"a0.2-c1.2", "c1.2", "a0.2"}, Fabric: true},
	{Name: "duplicate-address", What: "the edge switch has the host's address, too", Inject: script("ip address add 10.0.0.2/32 dev lo", "ip address del 10.0.0.2/32 dev lo", "e0.0"),
		Cause: Cause{{"10.0.0.2", "address", "another"}, {"10.0.0.2", "address", "also"}, {"10.0.0.2", "address", "too"}, {"10.0.0.2", "duplicate"}}, Fabric: true},
}

// mute takes from switches what takes outer headers off.
func mute(nodes ...string) func(*Bed) (func() error, error) {
	return func(b *Bed) (func() error, error) {
		heal := func() error { return b.asPlanned(nodes...) }
		for _, n := range nodes {
			if err := b.do(n, unplugDecap); err != nil {
				return heal, err
			}
		}
		return heal, nil
	}
}

// unplugDecap removes the device, or the programs, that take outer headers off.
func unplugDecap() error {
	links, err := netlink.LinkList()
	if err != nil {
		return err
	}
	found := 0
	for _, l := range links {
		n, err := disturb.Detach(l.Attrs().Name, "weft_decap")
		if strings.HasPrefix(l.Attrs().Name, "weft-decap") {
			n, err = 1, netlink.LinkDel(l)
		}
		if err != nil {
			return err
		}
		found += n
	}
	if found == 0 {
		return errors.New("nothing takes outer headers off at this switch")
	}
	return nil
}

// narrow sets the MTU of both ends of a link, and has its ends tell nobody.
func narrow(x, y string, mtu int) func(*Bed) (func() error, error) {
	return func(b *Bed) (func() error, error) {
		set := func(mtu int, more string) (err error) {
			for _, e := range bothEnds(x, y) {
				err = errors.Join(err, b.shell(e.from, fmt.Sprintf("ip link set %s mtu %d; %s", b.port(e.from, e.to), mtu, more)))
			}
			return err
		}
		return func() error { return set(1500, "nft delete table ip wrong") },
			set(mtu, "nft add table ip wrong; nft 'add chain ip wrong c { type filter hook output priority 0; }'; nft add rule ip wrong c ip protocol icmp drop")
	}
}
