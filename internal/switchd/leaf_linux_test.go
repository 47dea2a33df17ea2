package switchd

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/fabric"
	"weft/internal/slowtest"
	"weft/lab"
)

// An edge switch leads its hosts' packets by paths once outer headers fit, and not over links
// that have failed. Another switch of the same configuration has its routes.
func TestRun_leaf(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, "b", "fat-tree:k=4", "e0.0", "e0.1", "a0.2", "a0.3", "h0.0.2", "h0.0.3", "h0.1.2")
	const config = "topology: fat-tree:k=4\nbalance: conga\n"
	p := l.child("e0.0", config)
	l.within("it says that outer headers do not fit", func() bool {
		s := p.status()
		return s.Switch == "e0.0" && s.Balance == nil && strings.Contains(s.BalanceError, "give the ports between switches an MTU of 1520")
	})
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.cmd.Wait()
	if n := l.balancedPorts("e0.0"); n != 0 {
		t.Errorf("%d ports have a program that cannot work", n)
	}
	l.widen()
	p, up := l.child("e0.0", config), l.child("a0.2", config+"configure: false\n") // its cores are not built
	l.within("it leads to all other racks by several paths", func() bool { return leads(p.status(), 7) })
	l.within("the other switch has its routes", func() bool {
		s := up.status()
		return s.Switch == "a0.2" && s.Balance == nil && s.BalanceError == ""
	})
	if _, err := l.Fail("e0.0-a0.3", lab.FailLoud); err != nil {
		t.Fatal(err)
	}
	// a0.2, which has told that it has no cores, is the only way left, and to its pod alone.
	l.within("no rack has several paths any more", func() bool { return leads(p.status(), 0) })
	if _, err := l.Heal("e0.0-a0.3"); err != nil {
		t.Fatal(err)
	}
	l.within("both paths are back", func() bool { return leads(p.status(), 7) })
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.cmd.Wait()
	if n := l.balancedPorts("e0.0"); n != 0 {
		t.Errorf("%d ports still have the program: %s", n, p.log.String())
	}
}

// leads reports whether a leaf has several paths to a number of racks, and nothing troubles it.
func leads(s Status, racks int) bool {
	return s.Balance != nil && s.Balance.Leaf != nil && s.Balance.Destinations == racks && s.BalanceError == "" &&
		s.Repairs != nil && s.Repairs.Trouble == "" && s.Routes != nil && s.Routes.LastError == ""
}

// Agents of a lab keep the paths of the lab's own programs, as each of them learns which links
// are down, also those of others. Nothing troubles them there.
func TestAgent_leaf(t *testing.T) {
	l := upBalanced(t, "b", "leaf-spine:leaves=2,spines=2,hosts=1", "conga")
	leaves := slices.Sorted(l.top.Racks())
	ports := l.top.Ports(leaves[1])
	remote := l.top.LinkName(ports[len(ports)-1].Link)
	c := fast
	c.Routes, c.Leaf = true, true
	l.start(c)
	l.adjacent()
	several := func(racks int) func() bool {
		return func() bool {
			s, err := l.Balanced(leaves[0])
			return err == nil && s != nil && s.Destinations == racks
		}
	}
	if _, err := l.Fail(remote, lab.FailLoud); err != nil {
		t.Fatal(err)
	}
	l.within("the near leaf has one path", several(0))
	if _, err := l.Heal(); err != nil {
		t.Fatal(err)
	}
	l.within("the near leaf has two paths", several(1))
	l.within("all is as it should be", func() bool {
		for _, a := range l.agents {
			if s := a.Status(); s.Repairs.Trouble != "" || s.Routes.LastError != "" {
				return false
			}
		}
		return true
	})
	for id, a := range l.agents {
		if s := a.Status(); s.Routes.Errors != 0 {
			t.Errorf("%s: %+v", l.top.Node(id).Name, s.Routes)
		}
	}
}

// widen lets outer headers fit between e0.0 and its neighbours above.
func (l *testLab) widen() {
	l.t.Helper()
	for node, ports := range map[string][]string{"e0.0": {"p2", "p3"}, "a0.2": {"p0", "p1"}, "a0.3": {"p0", "p1"}} {
		err := l.Do(l.id(node), func() error {
			for _, name := range ports {
				link, err := netlink.LinkByName(name)
				if err == nil {
					err = netlink.LinkSetMTU(link, 1520)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// While the agent lives it has packets take paths. Behind one that was killed nobody would take
// those over failed links away: packets go by the kernel's routes.
func TestRun_leafKilled(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, "b", "fat-tree:k=4", "e0.0", "e0.1", "a0.2", "a0.3", "h0.0.2", "h0.0.3")
	l.widen()
	p := l.child("e0.0", "topology: fat-tree:k=4\nbalance: conga\n")
	l.within("it leads to all other racks by several paths", func() bool { return leads(p.status(), 7) })
	l.elephants("10.1.0.2")
	l.within("packets take paths for longer than a lease", func() bool {
		s := p.status()
		return s.Uptime > 1.3*leafLease.Seconds() && s.Balance.Chosen > 100
	})
	if s := p.status(); s.Balance.Leaf.Late != 0 {
		t.Errorf("%+v", s.Balance.Leaf)
	}
	p.cmd.Process.Kill()
	p.cmd.Wait()
	now := func() *fabric.BalanceStats {
		s, err := l.Balanced(l.id("e0.0"))
		if err != nil || s == nil || s.Leaf == nil {
			t.Fatalf("%+v, %v", s, err)
		}
		return s
	}
	l.within("packets go by routes", func() bool { return now().Leaf.Late > 0 })
	chosen := now().Chosen
	if _, err := l.Fail("e0.0-a0.2", lab.FailLoud); err != nil {
		t.Fatal(err)
	}
	late := now().Leaf.Late
	if by := l.sentUp(100_000); by[1] < 100_000 {
		t.Errorf("%d bytes went up by the ports, want all by the second", by)
	}
	if s := now(); s.Chosen != chosen || s.Leaf.Late < late+50 {
		t.Errorf("%d packets more took paths; %d went by routes", s.Chosen-chosen, s.Leaf.Late-late)
	}
}
