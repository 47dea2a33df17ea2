package faults

import (
	"errors"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel/disturb"
	"weft/lab"
)

var ofHosts = []Fault{
	{Name: "uplink-down", What: "the cable of the host's uplink is cut", Inject: failing("h0.0.2-e0.0", lab.FailLoud),
		Cause: Cause{{"p0", "down"}, {"p0", "carrier"}}},
	{Name: "uplink-mtu", What: "the MTU of the uplink becomes too small", Inject: script("ip link set p0 mtu 1300", "ip link set p0 mtu 1500", Observer),
		Cause: Cause{{"MTU", "p0"}}},
	{Name: "address-gone", What: "the host loses its address", Inject: addressGone,
		Cause: Cause{{"not its address 10.0.0.2"}, {"no device has 10.0.0.2"}, {"10.0.0.2 is on no"}}},
	{Name: "rp-filter-host", What: "a strict rp_filter on the host, set later", Inject: script(strict, loose, Observer),
		Cause: Cause{{"rp_filter"}}},
	{Name: "programs-gone", What: "somebody removes weft's programs from the uplink", Inject: detached,
		Cause: Cause{{"weft-", "of p0", "missing"}}},
	{Name: "foreign-program", What: "another's eBPF program at the uplink drops protocol 4", Inject: disturbing(disturb.Disturbance{Loss: 1, Short: true, Protocol: unix.IPPROTO_IPIP, First: true}, end{Observer, "e0.0"}),
		Cause: Cause{{"disturb", "program"}}},
	{Name: "firewall-4-host", What: "the host's firewall drops what leaves with protocol 4", Inject: script(
		"nft add table netdev wrong; nft 'add chain netdev wrong c { type filter hook egress device p0 priority 0; }'; nft add rule netdev wrong c ip protocol 4 drop", "nft delete table netdev wrong", Observer),
		Cause: Cause{{"drops", "protocol 4", "p0"}}},
	{Name: "firewall-probes", What: "another rack's edge switch drops weft's probes (UDP 9339)", Inject: filtering("forward", "udp dport 9339", "e3.1"),
		Cause: Cause{{"no request"}, {"9339"}, {"probes"}}, At: []string{"e3.1"}},
}

// addressGone takes the host's address away.
func addressGone(b *Bed) (func() error, error) {
	heal := func() error { return b.asPlanned(Observer) }
	return heal, b.do(Observer, func() error {
		links, err := netlink.LinkList()
		if err != nil {
			return err
		}
		for _, l := range links {
			addresses, err := netlink.AddrList(l, netlink.FAMILY_V4)
			if err != nil {
				return err
			}
			for _, a := range addresses {
				if a.IP.String() == "10.0.0.2" {
					return netlink.AddrDel(l, &a)
				}
			}
		}
		return errors.New("no device has 10.0.0.2")
	})
}

// detached removes weft's programs from the uplink.
func detached(b *Bed) (func() error, error) {
	return nil, b.do(Observer, func() error {
		n, err := disturb.Detach("p0", "weft_")
		if err == nil && n == 0 {
			err = errors.New("weft has no programs at p0")
		}
		return err
	})
}
