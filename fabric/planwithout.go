package fabric

import (
	"slices"
	"strings"
)

// Without returns the plan of the node while some of its ports have no device. It
// leaves out all that names them, and routes that lead over no other port.
func (p NodePlan) Without(missing ...string) NodePlan {
	if len(missing) == 0 {
		return p
	}
	lacks := func(port string) bool { return slices.Contains(missing, port) }
	p.Ports = deleted(p.Ports, func(port Port) bool { return lacks(port.Name) })
	p.Sysctls = deleted(p.Sysctls, func(s Sysctl) bool {
		return slices.ContainsFunc(missing, func(port string) bool { return strings.Contains(s.Key, ".conf."+port+".") })
	})
	p.Routes, p.Routes6 = routesWithout(p.Routes, lacks), routesWithout(p.Routes6, lacks)
	p.SIDs = deleted(p.SIDs, func(s SID) bool { return lacks(s.Port) })
	p.Local = deleted(p.Local, func(s SID) bool { return lacks(s.Port) })
	p.MPLS = deleted(p.MPLS, func(r MPLSRoute) bool { return lacks(r.Hop.Port) })
	p.Gate = deleted(p.Gate, func(g GatePort) bool { return lacks(g.Port) })
	return p
}

func routesWithout(routes []Route, lacks func(port string) bool) (left []Route) {
	for _, r := range routes {
		led := len(r.Via) > 0
		r.Via = deleted(r.Via, func(h Hop) bool { return lacks(h.Port) })
		if !led || len(r.Via) > 0 {
			left = append(left, r)
		}
	}
	return left
}

// deleted is slices.DeleteFunc of a copy.
func deleted[T any](all []T, del func(T) bool) []T { return slices.DeleteFunc(slices.Clone(all), del) }
