package hostsetup

import (
	"fmt"
	"strings"

	"weft/internal/kernel"
)

// Commands renders the plan as ip and sysctl commands, in the order of
// Apply and Divert. The TUN must exist.
func (p Plan) Commands() []string {
	var c []string
	if p.Address.IsValid() {
		c = append(c, fmt.Sprintf("ip address replace %s dev %s", p.Address, p.TUN))
	}
	for _, s := range p.Sysctls {
		c = append(c, fmt.Sprintf("sysctl -w %s=%s", s.Key, s.Value))
	}
	if p.LinkLocal.IsValid() {
		c = append(c, fmt.Sprintf("ip address replace %s/64 dev %s nodad", p.LinkLocal, p.Uplink))
	}
	for _, r := range p.Routes {
		c = append(c, r.command())
	}
	for _, r := range append(p.Rules, p.Divert...) {
		c = append(c, r.command())
	}
	return c
}

func (r Route) command() string {
	var b strings.Builder
	b.WriteString("ip route replace ")
	if r.Device == "" {
		b.WriteString("throw ")
	}
	fmt.Fprintf(&b, "%s table %d proto %d", r.Prefix, r.Table, kernel.RouteProtocol)
	if len(r.Also) > 0 {
		return b.String() + r.common() + r.hops()
	}
	if r.Gateway.IsValid() {
		fmt.Fprintf(&b, " via %s", r.Gateway)
	}
	if r.Device != "" {
		fmt.Fprintf(&b, " dev %s", r.Device)
	}
	if r.Gateway.IsValid() {
		b.WriteString(" onlink")
	}
	return b.String() + r.common()
}

// common is what a route has once, however many hops there are.
func (r Route) common() (s string) {
	if r.Src.IsValid() {
		s += fmt.Sprintf(" src %s", r.Src)
	}
	if r.MTU > 0 {
		s += fmt.Sprintf(" mtu %d", r.MTU)
	}
	if r.Congestion != "" {
		s += " congctl " + r.Congestion
	}
	return s
}

func (r Route) hops() (s string) {
	for _, hop := range append([]Hop{{r.Device, r.Gateway}}, r.Also...) {
		s += " nexthop"
		if hop.Gateway.IsValid() {
			s += fmt.Sprintf(" via %s", hop.Gateway)
		}
		s += " dev " + hop.Device
		if hop.Gateway.IsValid() {
			s += " onlink"
		}
	}
	return s
}

func (r Rule) command() string {
	var b strings.Builder
	b.WriteString("ip ")
	if r.IPv6 {
		b.WriteString("-6 ")
	}
	fmt.Fprintf(&b, "rule add pref %d", r.Priority)
	if r.Iif != "" {
		fmt.Fprintf(&b, " iif %s", r.Iif)
	}
	if r.To.IsValid() {
		fmt.Fprintf(&b, " to %s", r.To)
	}
	switch r.Protocol {
	case 0:
	case protoTCP:
		b.WriteString(" ipproto tcp")
	case protoUDP:
		b.WriteString(" ipproto udp")
	default:
		fmt.Fprintf(&b, " ipproto %d", r.Protocol)
	}
	if r.Port != 0 {
		fmt.Fprintf(&b, " dport %d", r.Port)
	}
	fmt.Fprintf(&b, " protocol %d", kernel.RouteProtocol)
	switch {
	case r.Table != 0:
		fmt.Fprintf(&b, " lookup %d", r.Table)
	case r.Goto != 0:
		fmt.Fprintf(&b, " goto %d", r.Goto)
	default:
		b.WriteString(" nop")
	}
	return b.String()
}
