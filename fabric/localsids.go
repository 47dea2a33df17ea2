package fabric

import (
	"errors"
	"fmt"
	"net/netip"

	"weft/topology/graph"
)

// Further actions of SIDs, as ip calls them.
const (
	ActionEnd    = "End"     // to the next node of the list in the destination (uN)
	ActionEndDT6 = "End.DT6" // the outer header off, the IPv6 packet inside to the main table
)

// What routes of an operator's SIDs say of their format, F3216: bits of block and node.
const (
	localBlockBits = 32
	localNodeBits  = 16
)

// planLocal adds the SIDs that a switch of a graph answers to. As a route needs a port and goes
// with it, each SID has one by every port.
func (p *NodePlan) planLocal(s graph.SIDs) error {
	if s.None() {
		return nil
	}
	if s.Decap4 == s.Decap6 {
		return errors.New("decap4 and decap6 are one SID, which Linux has in a VRF only (End.DT46): give them functions of their own")
	}
	for i, port := range p.Ports {
		for _, sid := range []struct {
			prefix netip.Prefix
			action string
		}{{s.Node, ActionEnd}, {s.Decap4, ActionEndDX4}, {s.Decap6, ActionEndDT6}} {
			p.Local = append(p.Local, SID{Prefix: sid.prefix, Action: sid.action, Port: port.Name, Metric: defaultMetric6 + i})
		}
	}
	return nil
}

// Decapsulation renders what a switch of a graph takes outer headers off by, apart from sysctls:
// commands for its shell, with comments. It is nil where packets do not bounce.
func (p NodePlan) Decapsulation() (c []string) {
	if len(p.Bouncing) > 0 {
		c = append(c,
			"# Decapsulation of IP-in-IP; needs the kernel modules ipip, sit and ip6_tunnel. The devices",
			"# accept any inner source: let no IP-in-IP into the fabric from outside (CVE-2025-23018).")
	}
	add := func(name, kind string) {
		c = append(c, fmt.Sprintf("ip link add name %s type %s", name, kind), fmt.Sprintf("ip link set %s up", name))
	}
	for i, a := range p.Bouncing {
		if a.Is6() {
			add(decapDevice(i), fmt.Sprintf("ip6tnl local %v remote any mode any encaplimit none", a))
			continue
		}
		add(decapDevice(i), fmt.Sprintf("ipip local %v remote any ttl 64", a))
		add(fmt.Sprintf("weft-six-in%d", i), fmt.Sprintf("sit local %v remote any ttl 64", a))
	}
	if len(p.Local) > 0 {
		c = append(c,
			"# Micro-SIDs; End with NEXT-C-SID needs Linux 6.1. The kernel does not carry congestion marks",
			"# of the outer header inside. Let no packets to these SIDs into the fabric from outside.")
		for _, s := range p.Local {
			c = append(c, s.command())
		}
	}
	return c
}
