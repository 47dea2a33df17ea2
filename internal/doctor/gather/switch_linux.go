package gather

import (
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/doctor"
	"weft/internal/kernel"
	"weft/internal/switchd"
)

// switches looks at a switch's configuration, and finds its ports and what they should be.
func (l *looker) switches() {
	f := l.f
	file := l.SwitchConfig
	if p := f.Daemon.Process; p != 0 && l.Lab == nil {
		if known := configOf(p); known != "" {
			file = known
		}
	}
	if exists(file) && l.Lab == nil {
		l.switchConfig(file)
	}
	if l.Lab != nil {
		l.plan(l.Lab.Plan)
		for _, p := range l.Lab.Ports {
			l.ports = append(l.ports, p.Name)
			if p.Host {
				l.toHosts = append(l.toHosts, p.Name)
			}
		}
	}
	if s := f.Switch; s != nil {
		for _, n := range s.Neighbours {
			if len(l.ports) < len(s.Neighbours) {
				l.ports = append(l.ports, n.Port)
			}
			f.Cables = append(f.Cables, doctor.Cable{Device: n.Port, Expected: n.Name})
		}
	}
}

func (l *looker) switchConfig(file string) {
	s := &doctor.Config{File: file, Sprays: true}
	l.f.Config = s
	c, err := switchd.Load(file)
	if err != nil {
		s.Error = err.Error()
		return
	}
	if l.user, err = c.Account(); err != nil {
		s.User = err.Error()
	}
	files, from := c.KeyFiles()
	for i := range files {
		s.Keys = append(s.Keys, l.keyFile(files[i], from[i]))
	}
	s.Becomes, s.Configures = l.user.UID != 0, c.Configure
	s.Topology, s.Signed, s.Carrier = c.Topology, len(c.Keys) > 0, c.Encap
	plan, err := c.Plan()
	if err != nil {
		s.Error = err.Error()
		return
	}
	p := PlanOf(plan)
	if !c.Routes && !c.Configure {
		p.Routes = nil // whoever has them may have joined prefixes
	}
	l.plan(p)
	l.toHosts = c.HostPorts(plan)
	for _, p := range plan.Ports {
		l.ports = append(l.ports, p.Name)
	}
}

// PlanOf is what a plan says that can be looked at.
func PlanOf(p fabric.NodePlan) *Plan {
	out := &Plan{Node: p.Node, Bouncing: len(p.Bouncing) > 0}
	for _, s := range p.Sysctls {
		if !s.Optional {
			out.Settings = append(out.Settings, [2]string{s.Key, s.Value})
		}
	}
	for _, r := range p.Routes {
		if r.Table == 0 && len(r.Via) > 0 && r.Prefix.Addr().Is4() {
			to := Route{Prefix: r.Prefix.String()}
			for _, hop := range r.Via {
				to.Ports = append(to.Ports, hop.Port)
			}
			out.Routes = append(out.Routes, to)
		}
	}
	return out
}

// plan compares what a switch is to be with what it is.
func (l *looker) plan(p *Plan) {
	if p == nil {
		return
	}
	out := &doctor.Plan{Node: p.Node, Bouncing: p.Bouncing, Routes: len(p.Routes)}
	for _, s := range p.Settings {
		out.Settings = append(out.Settings, doctor.Setting{Key: s[0], Value: s[1]})
		l.setting(s[0])
	}
	l.f.Plan = out
	routes, err := kernel.Dumped(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(unix.AF_INET, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		l.f.Unknown["routes"] = err.Error()
		return
	}
	have := make(map[string]bool)
	for _, r := range routes {
		have[kernel.PrefixKey(r)] = true
	}
	for _, r := range p.Routes {
		if !have[r.Prefix] {
			out.Missing = append(out.Missing, doctor.Missing(r))
		}
	}
}
