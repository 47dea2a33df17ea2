package doctor

import (
	"fmt"
	"slices"
	"strings"

	"weft/internal/overview"
)

func askDecap(f *Facts) (all []Finding, well string) {
	if f.Plan == nil || !f.Plan.Bouncing {
		return nil, "not this switch's part"
	}
	fix := fmt.Sprintf("weft switch with configure: true sets it up; weft plan --node %s prints what it needs; in a lab: weft lab up again", f.Plan.Node)
	var without []string
	how := ""
	for _, d := range f.Devices {
		switch {
		case !d.Present:
		case d.Decap == "":
			without = append(without, d.Name)
		default:
			how = d.Decap
		}
	}
	switch {
	case how == "":
		all = append(all, wrong(explains, "this switch takes no outer header off: neither weft's program nor the module ipip is there", fix))
	case how != "ipip" && len(without) > 0:
		all = append(all, wrong(explains, "outer headers are not taken off of what comes in by "+join(without), fix))
	}
	return all, "by " + map[string]string{"ebpf": "weft's program at all ports", "ipip": "the module ipip"}[how]
}

func askRoutes(f *Facts) (all []Finding, well string) {
	if f.Plan == nil {
		return nil, "not known which there should be"
	}
	if f.Plan.Routes == 0 {
		return nil, "weft does not keep them here"
	}
	var m []string
	for _, r := range f.Plan.Missing {
		if slices.ContainsFunc(r.Ports, f.leads) {
			m = append(m, r.Prefix)
		}
	}
	if len(m) > 0 {
		all = append(all, wrong(explains, fmt.Sprintf("%d of %d destinations have no route: %s", len(m), f.Plan.Routes, join(m)),
			fmt.Sprintf("weft switch with routes: true keeps them; weft plan --node %s prints them", f.Plan.Node)))
	}
	return all, fmt.Sprintf("to all of %d destinations", f.Plan.Routes)
}

// leads reports whether routes may lead to a port: it is up, and so is the neighbour.
func (f *Facts) leads(port string) bool {
	if !slices.ContainsFunc(f.Devices, func(d Device) bool { return d.Name == port && d.Up && d.Carrier }) {
		return false
	}
	return f.Switch == nil || !slices.ContainsFunc(f.Switch.Neighbours, func(n overview.Neighbour) bool { return n.Port == port && n.State != "up" })
}

func askSettings(f *Facts) (all []Finding, well string) {
	if f.Plan == nil {
		return nil, "not known what they should be"
	}
	var off, fix []string
	for _, s := range f.Plan.Settings {
		have, ok := f.Settings[s.Key]
		if !ok || sameSetting(have, s.Value) || strings.HasSuffix(s.Key, ".rp_filter") || s.Key == "net.ipv4.ip_forward" {
			continue // these have checks of their own
		}
		off = append(off, fmt.Sprintf("%s is %s, not %s", s.Key, have, s.Value))
		fix = append(fix, fmt.Sprintf("%s=%s", s.Key, s.Value))
	}
	if len(off) > 0 {
		all = append(all, wrong(slows, "settings differ from the plan: "+join(off), "sysctl -w "+strings.Join(fix[:min(len(fix), 4)], " ")))
	}
	return all, fmt.Sprintf("%d as planned", len(f.Plan.Settings))
}

// sameSetting compares two values of a sysctl.
func sameSetting(a, b string) bool {
	var x, y int64
	if _, err := fmt.Sscanf(a, "%v", &x); err == nil {
		if _, err := fmt.Sscanf(b, "%v", &y); err == nil && !strings.ContainsAny(a, " \t") {
			return x == y
		}
	}
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}

func askPorts(f *Facts) (all []Finding, well string) {
	idle := 0
	for _, d := range f.Devices {
		switch {
		case !d.Present:
			all = append(all, wrong(explains, fmt.Sprintf("there is no port %s", d.Name), "ip link shows the ports; ports: in the configuration says how they are called"))
		case !d.Up:
			all = append(all, wrong(explains, fmt.Sprintf("port %s is down: somebody has set it so", d.Name), "ip link set "+d.Name+" up"))
		case !d.Carrier && d.ToHost: // who has switched off is no fault
			idle++
		case !d.Carrier:
			all = append(all, wrong(seen, fmt.Sprintf("port %s has no carrier", d.Name), "look at the cable, the optics, and the port at the other end"))
		}
	}
	if idle > 0 {
		return all, fmt.Sprintf("%d up, %d to hosts without a carrier", len(f.Devices)-idle, idle)
	}
	return all, fmt.Sprintf("%d up", len(f.Devices))
}

// fewRefused messages may be refused while neighbours start.
const fewRefused = 10

// whySilent begins the reason of a neighbour of whom nothing was ever believed (topoupdate).
const whySilent = "has never spoken"

// askIdentity finds a switch that is called as another one, or is cabled to other ports than the
// topology has.
func askIdentity(f *Facts) (all []Finding, well string) {
	s := f.Switch
	if s == nil {
		return nil, "not asked: no agent answers"
	}
	var silent []string
	for _, n := range s.Neighbours {
		if !n.Hears && strings.HasPrefix(n.Why, whySilent) {
			silent = append(silent, fmt.Sprintf("%s (port %s)", n.Name, n.Port))
		}
	}
	n := s.Rejected["sender"]
	if s2 := f.SwitchBefore; s2 != nil && s2.Process == s.Process && n == s2.Rejected["sender"] && len(silent) == 0 {
		n = 0 // it is over
	}
	if n >= fewRefused {
		who := "a neighbour"
		if len(silent) > 0 {
			who = join(silent)
		}
		all = append(all, wrong(explains, fmt.Sprintf("%s calls itself by another name than the topology has there: %d messages refused by their sender", who, n),
			"compare node: in the configuration of both ends (weft status there), and the cables: each switch must run under its own name"))
	}
	return all, "neighbours are who the topology says"
}

func askWiring(f *Facts) (all []Finding, well string) {
	known := 0
	for _, c := range f.Cables {
		if c.Expected == "" || c.Node == "" {
			continue
		}
		if known++; c.Node != c.Expected {
			all = append(all, wrong(explains, fmt.Sprintf("%s is cabled to %s, and the topology has %s there", c.Device, c.Node, c.Expected),
				"change the cable, or the topology: weft topology from-lldp"))
		}
	}
	if known == 0 {
		return all, "not known: no LLDP here"
	}
	return all, fmt.Sprintf("as the topology has it, by LLDP at %d devices", known)
}
