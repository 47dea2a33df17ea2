package fabric

import (
	"fmt"
	"net/netip"
	"strings"

	"weft/internal/kernel"
)

// lastMetric makes routes that lead nowhere yield to any other route to the same
// prefix.
const lastMetric = 4096

// Commands renders the plan as ip and sysctl commands to be pasted into a shell
// on the node, as root, with comments. Running them again is harmless, except
// that adding the ipip device then prints that it exists.
func (p NodePlan) Commands() []string {
	c := []string{fmt.Sprintf("# %s, %s of %s", p.Node, p.role(), p.Topology) + ifValid(", ", p.Address)}
	c = append(c, "ip link set lo up")
	for _, port := range p.Ports {
		c = append(c, fmt.Sprintf("ip link set %s up # to %s", port.Name, port.Peer)+ifValid(" ", port.PeerAddr))
	}
	for _, addr := range p.addresses() {
		c = append(c, fmt.Sprintf("ip address replace %s/32 dev %s", addr, p.Device))
	}
	for _, s := range p.Sysctls {
		c = append(c, s.Command())
	}
	for _, r := range p.Routes {
		c = append(c, r.command())
	}
	for _, r := range p.rules(false) {
		c = append(c, r.command())
	}
	c = append(c, p.suffixCommands()...)
	c = append(c, p.labelCommands()...)
	if p.graph {
		return append(c, p.Decapsulation()...)
	}
	if len(p.Bouncing) == 0 {
		return c
	}
	c = append(c,
		"# Decapsulation of IP-in-IP; needs the kernel module ipip. The device accepts any",
		"# inner source: let no IP-in-IP into the fabric from outside (CVE-2025-23018).")
	for i, addr := range p.Bouncing {
		dev := decapDevice(i)
		c = append(c,
			fmt.Sprintf("ip link add name %s type ipip local %s remote any ttl 64", dev, addr),
			fmt.Sprintf("ip link set %s up", dev))
	}
	for _, r := range p.virtualRules(true) {
		if r.iif != "" {
			c = append(c, r.command())
		}
	}
	return c
}

// ifValid is nothing for an address that is not known.
func ifValid(before string, a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return before + a.String()
}

func (p NodePlan) role() string {
	if p.Layer == "host" {
		return "host"
	}
	return p.Layer + " switch"
}

func (r Route) command() string {
	if len(r.Via) == 0 {
		end := "unreachable"
		if r.Drop {
			end = "blackhole"
		}
		return fmt.Sprintf("%s route replace %s %s%s proto %d metric %d", r.ip(), end, prefixName(r.Prefix), r.inTable(), kernel.RouteProtocol, lastMetric)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s route replace %s%s", r.ip(), prefixName(r.Prefix), r.inTable())
	if len(r.Via) > 1 {
		fmt.Fprintf(&b, " proto %d%s", kernel.RouteProtocol, r.from())
		for _, h := range r.Via {
			fmt.Fprintf(&b, " nexthop via %s dev %s", h.Addr, h.Port)
			if h.Weight > 0 {
				fmt.Fprintf(&b, " weight %d", h.Weight)
			}
			b.WriteString(" onlink")
		}
		return b.String()
	}
	fmt.Fprintf(&b, " via %s dev %s onlink proto %d%s", r.Via[0].Addr, r.Via[0].Port, kernel.RouteProtocol, r.from())
	return b.String()
}

func (r Route) from() string {
	if !r.Src.IsValid() {
		return ""
	}
	return fmt.Sprintf(" src %s", r.Src)
}

// ip is the program and the family that the route is for.
func (r Route) ip() string {
	if r.Prefix.Addr().Is6() {
		return "ip -6"
	}
	return "ip"
}

func (r Route) inTable() string {
	if r.Table == 0 {
		return ""
	}
	return fmt.Sprintf(" table %d", r.Table)
}

func prefixName(p netip.Prefix) string {
	if p.Bits() == 0 {
		return "default"
	}
	return p.String()
}

// decapDevice names the ipip device of the i-th bouncing address.
func decapDevice(i int) string { return fmt.Sprintf("weft-decap%d", i) }
