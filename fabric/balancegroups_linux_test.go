package fabric

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/internal/balance"
)

// grouped is the plan of fourWays with groups of its four hops.
func grouped(groups ...int) (p NodePlan) {
	r := Route{Prefix: netip.MustParsePrefix("10.9.0.0/16")}
	for i, g := range groups {
		r.Via = append(r.Via, Hop{Port: fmt.Sprintf("p%d", i+1), Group: g})
	}
	p.Routes = []Route{r, {Prefix: r.Prefix, Table: 5, Via: []Hop{{Port: "p1", Group: 7}}}}
	return p
}

// Sets have the plan's groups, whoever brings them in step with the kernel's routes, and only
// drill's.
func TestBalance_groupsOfThePlan(t *testing.T) {
	fourWays(t, func() error {
		cfg := balanceOf("drill")
		cfg.Routes = grouped(0, 1, 1, 0).Routes
		b, err := AttachBalance(cfg)
		if err != nil {
			return err
		}
		defer func() { b.Detach() }()
		want := func(what, groups string) {
			t.Helper()
			var number uint32
			var s balance.Set
			err := b.in.Maps[balanceMapDestinations].Lookup(destination{32, netip.MustParseAddr("10.9.0.1").As4()}, &number)
			if err == nil {
				err = b.in.Maps[balanceMapSets].Lookup(number, &s)
			}
			if err != nil {
				t.Fatal(what, err)
			}
			var have strings.Builder
			for i, step := range s.Steps[:s.N] {
				link, err := netlink.LinkByIndex(int(step.Port))
				if err != nil {
					t.Fatal(err)
				}
				if i == int(step.First) && i > 0 {
					have.WriteString(" |")
				}
				have.WriteString(" " + link.Attrs().Name)
			}
			if have.String() != " "+groups {
				t.Errorf("%s: steps%s, want %s", what, have.String(), groups)
			}
		}
		refresh := func() {
			t.Helper()
			if err := RefreshBalance([]string{"p0", "p1"}); err != nil {
				t.Error(err)
			}
		}
		want("attached", "p4 p1 p4 | p2 p3") // p4 weighs 2
		refresh()
		want("refreshed by another", "p4 p1 p4 | p2 p3")
		words, err := b.Descriptors()
		if err != nil {
			return err
		}
		heir, err := InheritBalance(words, balanceOf("drill"))
		if err != nil {
			return err
		}
		b.Close()
		b = heir
		if _, err := b.Repair(); err != nil {
			t.Error(err)
		}
		want("inherited", "p4 p1 p4 | p2 p3")
		if err := b.Group(grouped(0, 0, 1, 2)); err != nil {
			t.Error(err)
		}
		if _, err := b.Repair(); err != nil {
			t.Error(err)
		}
		want("another plan", "p1 p2 | p3 | p4 p4")
		if err := b.Group(grouped(0, 0, 0, 0)); err != nil {
			t.Error(err)
		}
		refresh()
		want("all symmetric", "p4 p1 p2 p3 p4")

		cfg.Rule = "rrb"
		other, err := AttachBalance(cfg)
		if err != nil {
			return err
		}
		b.Close()
		b = other
		if err := b.Group(grouped(0, 0, 1, 2)); err != nil {
			t.Error(err)
		}
		refresh()
		want("another rule", "p4 p1 p2 p3 p4")
		return nil
	})
}
