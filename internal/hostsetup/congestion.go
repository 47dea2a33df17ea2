package hostsetup

import (
	"cmp"
	"net/netip"
	"slices"
)

// Congestion names a congestion control for the host's own TCP. The kernel takes it from
// the route of a connection when that begins; at both ends of DCTCP it negotiates ECN then.
type Congestion struct {
	Control string         // "" leaves it as the kernel has it
	For     []netip.Prefix // destinations; nil: all of the fabric and the tunnel
}

// congestion names the congestion control in the plan's routes, and adds routes to
// destinations that have it inside of others that do not. What the plan leaves to the
// kernel's own routes, such as the host's own rack, stays so.
func (p *Plan) congestion(c Congestion) {
	if c.Control == "" {
		return
	}
	for _, table := range []int{TableIn, TableOut} {
		var added []Route
		for _, to := range c.For {
			if r, ok := p.longest(table, to); ok && r.Device != "" && r.Prefix != to.Masked() {
				r.Prefix = to.Masked()
				added = append(added, r)
			}
		}
		slices.SortFunc(added, func(a, b Route) int { return a.Prefix.Compare(b.Prefix) })
		p.Routes = append(p.Routes, slices.CompactFunc(added, func(a, b Route) bool { return a.Prefix == b.Prefix })...)
	}
	for i := range p.Routes {
		if r := &p.Routes[i]; r.Device != "" && c.has(r.Prefix) {
			r.Congestion = c.Control
		}
	}
}

// longest returns the route that the kernel would find for all of a prefix.
func (p *Plan) longest(table int, to netip.Prefix) (Route, bool) {
	var all []Route
	for _, r := range p.Routes {
		if r.Table == table && within(to, r.Prefix) {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return Route{}, false
	}
	return slices.MaxFunc(all, func(a, b Route) int { return cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()) }), true
}

func (c Congestion) has(to netip.Prefix) bool {
	return slices.ContainsFunc(c.For, func(p netip.Prefix) bool { return within(to, p) })
}

// within reports whether all of a is in b.
func within(a, b netip.Prefix) bool { return b.Bits() <= a.Bits() && b.Contains(a.Addr()) }
