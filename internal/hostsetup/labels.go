package hostsetup

import (
	"strings"

	"weft/encap"
	"weft/internal/kernel"
	"weft/topology"
)

// labels makes the kernel forward packets with labels from the TUN to the switch, whose
// link-local address follows from its other one. So the host must forward IPv6, and it
// would then forget what routers have advertised.
func (p *Plan) labels(o Options) {
	if o.Advertised {
		p.Sysctls = append(p.Sysctls, kernel.Sysctl{Key: confKey6(o.Uplink, "accept_ra"), Value: "2"})
	}
	p.Sysctls = append(p.Sysctls, kernel.Sysctl{Key: confKey6("all", "forwarding"), Value: "1"})
	p.LinkLocal = topology.LinkLocal6(o.Address)
	p.Routes = append(p.Routes, Route{Table: TableOut, Prefix: encap.SIDBlock, Device: o.Uplink, Gateway: topology.LinkLocal6(o.Gateway)})
	p.Rules = append(p.Rules, Rule{Priority: RuleOut, IPv6: true, Iif: o.TUN, Table: TableOut})
}

// forwardsLabels reports whether the kernel has to forward packets with labels.
func (o Options) forwardsLabels() bool {
	return o.Carrier == encap.CarrierSRv6 && o.TUN != "" && !o.SIDs
}

// minMTU bounds MTU. Devices with less than what IPv6 asks for have none.
func (o Options) minMTU() int {
	if o.Carrier == encap.CarrierSRv6 {
		return kernel.MinMTU6 - o.Carrier.Overhead()
	}
	return kernel.MinMTU - o.Carrier.Overhead()
}

// confKey6 is confKey for IPv6.
func confKey6(device, name string) string {
	return "net.ipv6.conf." + strings.ReplaceAll(device, ".", "/") + "." + name
}
