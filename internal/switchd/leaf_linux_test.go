package switchd

import (
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/lab"
)

// An edge switch leads its hosts' packets by paths once outer headers fit, and not over links
// that have failed. Another switch of the same configuration has its routes.
func TestRun_leaf(t *testing.T) {
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
			t.Fatal(err)
		}
	}
	p, up := l.child("e0.0", config), l.child("a0.2", config+"configure: false\n") // its cores are not built
	l.within("it leads to all other racks by several paths", func() bool {
		s := p.status()
		return s.Balance != nil && s.Balance.Leaf != nil && s.Balance.Destinations == 7 && s.BalanceError == ""
	})
	l.within("the other switch has its routes", func() bool {
		s := up.status()
		return s.Switch == "a0.2" && s.Balance == nil && s.BalanceError == ""
	})
	if _, err := l.Fail("e0.0-a0.3", lab.FailLoud); err != nil {
		t.Fatal(err)
	}
	// a0.2, which has told that it has no cores, is the only way left, and to its pod alone.
	l.within("no rack has several paths any more", func() bool { s := p.status(); return s.Balance != nil && s.Balance.Destinations == 0 })
	if _, err := l.Heal("e0.0-a0.3"); err != nil {
		t.Fatal(err)
	}
	l.within("both paths are back", func() bool { s := p.status(); return s.Balance != nil && s.Balance.Destinations == 7 })
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.cmd.Wait()
	if n := l.balancedPorts("e0.0"); n != 0 {
		t.Errorf("%d ports still have the program: %s", n, p.log.String())
	}
}
