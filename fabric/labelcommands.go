package fabric

import (
	"fmt"

	"weft/internal/kernel"
)

// labelCommands renders what a plan has for IPv6 and labels, besides its sysctls. Adding
// the port's own route to fe80::/64 is left to the kernel.
func (p NodePlan) labelCommands() []string {
	var c []string
	if p.LinkLocal6.IsValid() {
		c = append(c, "# Labels in IPv6: IANA's block of SRv6 SIDs; End.X of NEXT-C-SID needs Linux 6.6.")
	}
	if p.has6() {
		for i, port := range p.Ports {
			if a := p.linkLocal(i); a.IsValid() {
				c = append(c, fmt.Sprintf("ip -6 address replace %s/64 dev %s nodad", a, port.Name))
			}
		}
		for _, a := range p.addresses6() {
			c = append(c, fmt.Sprintf("ip -6 address replace %s/128 dev %s nodad", a, p.Device))
		}
		for _, r := range p.Routes6 {
			c = append(c, r.command())
		}
		for _, s := range p.SIDs {
			c = append(c, s.command())
		}
	}
	if len(p.SIDs) > 0 {
		c = append(c, "# weft also has a program here that carries congestion marks inside where labels end.")
	}
	if len(p.Gate) > 0 {
		c = append(c,
			"# weft also has a program here that keeps hosts from sending with labels what is",
			"# not their own, which other filters can do:")
		for _, g := range p.Gate {
			c = append(c, fmt.Sprintf("# %s: from %v only", g.Port, g.Sources))
		}
	}
	if len(p.MPLS) > 0 {
		c = append(c, "# Labels in MPLS; needs the kernel module mpls_router.")
		for _, s := range p.mplsSysctls() {
			c = append(c, s.Command())
		}
		for _, r := range p.MPLS {
			c = append(c, r.command())
		}
	}
	return c
}

func (s SID) command() string {
	c := fmt.Sprintf("ip -6 route replace %s encap seg6local action %s", s.Prefix, s.Action)
	switch s.Action {
	case ActionEndX:
		c += fmt.Sprintf(" nh6 %s flavors next-csid lblen %d nflen %d", s.NextHop, sidBlockBits, sidBits)
	case ActionEnd:
		c += fmt.Sprintf(" flavors next-csid lblen %d nflen %d", localBlockBits, localNodeBits)
	case ActionEndDT6:
		c += " table main"
	default:
		c += " nh4 0.0.0.0"
	}
	return c + fmt.Sprintf(" count dev %s proto %d metric %d", s.Port, kernel.RouteProtocol, s.Metric)
}
