package fabric

import (
	"slices"
	"testing"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"

	"github.com/vishvananda/netlink"
)

// Rules and tables of virtual spines that are no longer planned go; those of
// others stay.
func TestApply_virtualSpines(t *testing.T) {
	kerneltest.NeedRoot(t)
	top := kerneltest.Topology(t, "vl2:d0=2,d1=4,d2=4,hosts=2")
	p := mustPlan(t, top, "3.0")
	ns := portedNamespace(t, "virtual", p)
	foreign := netlink.NewRule()
	foreign.Priority, foreign.Mark, foreign.Table = virtualRule, 1, 99
	err := kernel.InNamespace(ns, func() error { return netlink.RuleAdd(foreign) })
	if err != nil {
		t.Fatal(err)
	}
	applyNamed(t, ns, p)
	if r := applyNamed(t, ns, p); r.Changed != 0 {
		t.Errorf("%d changes the second time", r.Changed)
	}
	if got := countVirtual(t, ns); got != (virtualCount{rules: 2, routes: 8, foreign: 1}) {
		t.Errorf("planned: %+v", got)
	}
	r := openRoutes(t, ns, p)
	for _, route := range []string{"10.0.0.0/24", "10.0.3.0/24"} {
		if !slices.ContainsFunc(p.Routes, func(r Route) bool { return r.Table != 0 && r.Prefix.String() == route }) {
			t.Errorf("no route to %s of a virtual spine", route)
		}
	}
	less := p
	less.Virtual = nil
	less.Routes = slices.DeleteFunc(slices.Clone(p.Routes), func(r Route) bool { return r.Table != 0 })
	setRoutes(t, r, less)
	if got := countVirtual(t, ns); got != (virtualCount{rules: 2, foreign: 1}) {
		t.Errorf("routes set without: %+v", got)
	}
	applyNamed(t, ns, less)
	if got := countVirtual(t, ns); got != (virtualCount{foreign: 1}) {
		t.Errorf("no longer planned: %+v", got)
	}
}

type virtualCount struct{ rules, routes, foreign int }

func countVirtual(t *testing.T, ns string) (c virtualCount) {
	t.Helper()
	err := kernel.InNamespace(ns, func() error {
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return err
		}
		defer h.Close()
		rules, err := h.RuleList(netlink.FAMILY_V4)
		if err != nil {
			return err
		}
		for _, r := range rules {
			switch {
			case r.Table == 99:
				c.foreign++
			case isVirtualTable(r.Table):
				c.rules++
			}
		}
		routes, err := plannedRoutes(h)
		for id := range routes {
			if isVirtualTable(id.table) {
				c.routes++
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
