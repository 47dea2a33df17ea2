package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// Chain is a chain of rules of nftables, or of iptables.
type Chain struct {
	Family   string // ip, ip6, inet, netdev, bridge, arp
	Table    string
	Name     string
	Hook     string   // "" if only other chains lead to it
	Devices  []string // of ingress and egress
	Priority int
	Drops    bool // by its policy
	Rules    []Rule
}

// Rule is what is done with packets that all of its Matches fit.
type Rule struct {
	Matches []Match
	Verdict string // accept, drop, reject, jump, goto, return, perhaps; "": it goes on
	Target  string // of jump and goto
	Text    string // the rule for people
}

// perhaps is the verdict of a rule that may accept a packet, or end its way in another manner: what
// it does depends on what is not understood.
const perhaps = "perhaps"

// Match is a condition on one property of a packet. What it does not understand has the Field
// "".
type Match struct {
	Field  string // protocol, dport, sport, iif, oif, family, state
	Not    bool
	Values []Range // of protocol and ports
	Names  []string
}

// Range is from First to Last.
type Range struct{ First, Last int }

// packet is one that weft sends or needs. Addresses are not known.
type packet struct {
	what     string
	family   string // ip or ip6
	protocol int
	dport    int    // 0: none; anyPort: it is not known
	device   string // by which it comes in; "": it is not known
	hooks    []string
	weight   weight
	// answered: connections of it have packets both ways, so connection tracking may know it from
	// before.
	answered bool
}

const anyPort = -1

// Protocols and ports of docs/operating.md.
const (
	protoIPIP   = 4
	protoTCP    = 6
	protoUDP    = 17
	protoIPv6   = 41
	portUpdates = 9338
	portProbes  = 9339
	portQCN     = 9340
)

// needed lists the packets that must pass this machine.
func (f *Facts) needed() (all []packet) {
	outer, family := protoIPIP, "ip"
	name := "IP-in-IP (protocol 4)"
	switch {
	case f.Config != nil && f.Config.Carrier == "srv6":
		outer, family, name = protoIPIP, "ip6", "SRv6 (IPv6, protocol 4)"
	case f.Config != nil && f.Config.Carrier == "udp":
		outer = 0
	}
	in := []string{"ingress", "prerouting", "input"}
	out := []string{"output", "postrouting", "egress"}
	through := []string{"ingress", "prerouting", "forward", "postrouting", "egress"}
	add := func(what string, hooks []string) {
		all = append(all, packet{what: what, family: family, protocol: outer, hooks: hooks, weight: explains})
	}
	port := func(what string, n int, hooks []string, w weight) {
		all = append(all, packet{what: fmt.Sprintf("%s (UDP %d)", what, n), family: "ip", protocol: protoUDP, dport: n, hooks: hooks, weight: w,
			answered: n != portUpdates && n != portQCN})
	}
	if f.Role == RoleSwitch {
		add(name, through)
		add(name+" for this switch", in)
		port("hellos and link-state updates", portUpdates, in, explains)
		port("probes taken out of outer headers", portProbes, through, explains)
		return all
	}
	// Hosts hear probes by packet sockets, which no firewall is in front of.
	c := f.Config
	if c == nil {
		c = &Config{}
	}
	if outer != 0 {
		add(name, out)
		if c.Gateway {
			add(name+" of the daemon", []string{"prerouting", "forward", "postrouting"})
		}
		if f.expectsUpdates() { // without them failures are found by probes, which takes longer
			port("link-state updates", portUpdates, in, slows)
		}
	}
	if c.Gateway && c.TUN != "" {
		all = append(all, packet{what: "TCP that weft hands over by " + c.TUN, family: "ip", protocol: protoTCP, dport: anyPort, device: c.TUN,
			hooks: []string{"prerouting", "input"}, weight: explains, answered: true})
	}
	if c.QCN {
		port("congestion messages", portQCN, in, explains)
	}
	if c.UDPPort != 0 {
		port("the tunnel", c.UDPPort, in, explains)
		port("the tunnel", c.UDPPort, out, explains)
	}
	return all
}

// expectsUpdates reports whether switches are to tell this host of failures: it has their keys, or
// has heard of one.
func (f *Facts) expectsUpdates() bool {
	if f.Config != nil && f.Config.Signed {
		return true
	}
	return f.Host != nil && f.Host.Failures != nil && f.Host.Failures.Updates != nil && f.Host.Failures.Updates.Switches > 0
}

func askFirewall(f *Facts) (all []Finding, well string) {
	told := make(map[string]bool)
	w := newWalker(f.Firewall)
	for _, p := range f.needed() {
		w.begin(p)
		for _, hook := range p.hooks {
			for i := range f.Firewall {
				c := &f.Firewall[i]
				if c.Hook != hook || !f.concerns(c, p) {
					continue
				}
				by, drops := w.base(i)
				if w.left < 0 {
					return []Finding{{OK: true, Skipped: "the rules lead to each other in too many ways to follow"}}, ""
				}
				if !drops || told[by] {
					continue
				}
				told[by] = true
				all = append(all, wrong(p.weight, fmt.Sprintf("the firewall drops %s at %s: %s", p.what, hook, by), c.fix(p)))
			}
		}
	}
	return all, fmt.Sprintf("no rule drops what weft sends (%d base chains)", f.bases())
}

func (f *Facts) bases() (n int) {
	for _, c := range f.Firewall {
		if c.Hook != "" {
			n++
		}
	}
	return n
}

// fix is a rule that lets a packet pass.
func (c *Chain) fix(p packet) string {
	what := fmt.Sprintf("meta l4proto %d", p.protocol)
	switch {
	case p.device != "":
		what = "iifname " + p.device
	case p.dport > 0:
		what = fmt.Sprintf("udp dport %d", p.dport)
	}
	return fmt.Sprintf("nft insert rule %s %s %s %s accept; or take the rule away: nft -a list chain %s %s %s", c.Family, c.Table, c.Name, what, c.Family, c.Table, c.Name)
}

// concerns reports whether a packet passes a base chain.
func (f *Facts) concerns(c *Chain, p packet) bool {
	switch {
	case c.Family == "netdev" || len(c.Devices) > 0:
		// Some versions of nft do not say which devices a chain of several has.
		if p.device != "" {
			return slices.Contains(c.Devices, p.device)
		}
		return slices.ContainsFunc(f.Devices, func(d Device) bool { return slices.Contains(c.Devices, d.Name) })
	case c.Family == "inet":
		return true
	}
	return c.Family == p.family
}

// fits reports whether a packet may fit a rule, whether it surely does, and whether the rule
// names the packet's protocol or port.
func (r *Rule) fits(p packet) (fit, sure, named bool) {
	sure = true
	for _, m := range r.Matches {
		yes, known := m.fits(p)
		switch {
		case !known:
			sure = false
		case !yes:
			return false, false, false
		case !m.Not && (m.Field == "protocol" && p.protocol != protoUDP && p.protocol != protoTCP || m.Field == "dport" && p.dport > 0):
			named = true
		}
	}
	return true, sure, named
}

// fits reports whether a packet fits, if that can be known.
func (m *Match) fits(p packet) (yes, known bool) {
	in := func(n int) bool {
		return slices.ContainsFunc(m.Values, func(r Range) bool { return r.First <= n && n <= r.Last })
	}
	switch m.Field {
	case "protocol":
		return in(p.protocol) != m.Not, true
	case "dport":
		switch p.dport {
		case 0:
			return m.Not, true
		case anyPort:
			return false, false
		}
		return in(p.dport) != m.Not, true
	case "family":
		return slices.Contains(m.Names, p.family) != m.Not, true
	case "state": // a packet that nothing answers is the first that is seen of its connection
		if p.answered && slices.Contains(m.Names, "established") != slices.Contains(m.Names, "new") {
			return false, false
		}
		return slices.ContainsFunc(m.Names, func(s string) bool { return s == "new" || s == "untracked" }) != m.Not, true
	case "iif", "oif":
		switch {
		case len(m.Names) == 1 && m.Names[0] == "lo":
			return m.Not, true
		case m.Field == "iif" && p.device != "" && len(m.Names) > 0 && !strings.Contains(strings.Join(m.Names, ""), "*"):
			return slices.Contains(m.Names, p.device) != m.Not, true
		}
	}
	return false, false
}
