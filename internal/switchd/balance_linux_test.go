package switchd

import (
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
)

// hashPolicy reads a switch's setting.
func (l *testLab) hashPolicy(name string) (value string) {
	l.t.Helper()
	err := l.Do(l.id(name), func() (err error) {
		value, err = kernel.ReadSysctl("net.ipv4.fib_multipath_hash_policy")
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return value
}

// balancedPorts counts the ports that have a program, and removes these.
func (l *testLab) balancedPorts(name string) (n int) {
	l.t.Helper()
	err := l.Do(l.id(name), func() (err error) {
		n, err = fabric.DetachBalance([]string{"p0", "p1", "p2", "p3"})
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

// The agent has the switch balance with the two capabilities that it keeps, repairs what
// others undo, and leaves nothing behind when it ends.
func TestRun_balances(t *testing.T) {
	l := upLab(t, "b", "fat-tree:k=4", "e0.0", "a0.2", "a0.3", "h0.0.2", "h0.0.3")
	p := l.child("e0.0", "topology: fat-tree:k=4\nbalance: drill\n")
	l.within("it balances to some destination", func() bool {
		s := p.status()
		return s.Balance != nil && s.Balance.Rule == "drill:d=2,m=1" && s.Balance.Destinations > 0 && s.BalanceError == ""
	})
	if v := l.hashPolicy("e0.0"); v != "1" {
		t.Errorf("the hash policy is %s, want 1", v)
	}
	if n := l.balancedPorts("e0.0"); n != 4 {
		t.Errorf("%d ports have the program, want 4", n)
	}
	l.within("programs and setting are back", func() bool {
		r := p.status().Repairs
		return r.Trouble == "" && strings.Contains(strings.Join(r.Last, "\n"), "weft-balance at") && l.hashPolicy("e0.0") == "1"
	})
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.cmd.Wait()
	if n := l.balancedPorts("e0.0"); n != 0 {
		t.Errorf("%d ports still have the program: %s", n, p.log.String())
	}
	if v := l.hashPolicy("e0.0"); v != "3" {
		t.Errorf("the hash policy is %s, want the plan's 3", v)
	}
}

// Where ways are asymmetric, the agent has drill keep flows in groups of them, also when it has
// but two capabilities left, and others have taken the routes away.
func TestRun_balancesInGroups(t *testing.T) {
	slowtest.System(t)
	const spec = "fat-tree:k=4,fabric-rate=20,e0.1-a0.2=10"
	l := upLab(t, "b", spec, "e0.0", "a0.2", "a0.3", "h0.0.2", "h0.0.3")
	p := l.child("e0.0", "topology: "+spec+"\nbalance: drill\n")
	grouped := func() bool {
		s := p.status()
		return s.Balance != nil && s.Balance.Grouped > 0 && s.Balance.Grouped <= s.Balance.Destinations && s.Repairs.Trouble == "" && s.Routes.LastError == ""
	}
	l.within("it has groups", grouped)
	before := p.status().Balance.Grouped
	kerneltest.Shell(t, l.Namespace(l.id("e0.0")), "ip route flush table main proto 87")
	l.within("it has groups again", func() bool { return grouped() && p.status().Balance.Grouped == before && p.status().Routes.Changed > 0 })
}

// What a crash leaves is taken over by the next start, with what the setting was before, or
// removed.
func TestRun_balanceCrash(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, "b", "fat-tree:k=4", "e0.0", "a0.2", "a0.3", "h0.0.2", "h0.0.3")
	for _, config := range []string{"balance: drb\n", "balance: letflow\n", "balance: routes\n"} {
		p := l.child("e0.0", "topology: fat-tree:k=4\nconfigure: false\n"+config)
		l.within("it runs", func() bool { s := p.status(); return s.Switch == "e0.0" && s.BalanceError == "" })
		wanted := "1"
		if config == "balance: routes\n" {
			wanted = "3" // the lab's
		}
		if v := l.hashPolicy("e0.0"); v != wanted {
			t.Errorf("%s: the hash policy is %s, want %s", config, v, wanted)
		}
		p.cmd.Process.Kill()
		p.cmd.Wait()
	}
	if n := l.balancedPorts("e0.0"); n != 0 {
		t.Errorf("%d ports still have the program", n)
	}
}

// twoLevels counts what a switch has of two-level tables.
func (l *testLab) twoLevels(name string) (routes, rules, programs int) {
	l.t.Helper()
	err := l.Do(l.id(name), func() error {
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return err
		}
		defer h.Close()
		for _, table := range []int{5600, 5601, 5602} { // of the first level, and of the ports up
			list, err := kernel.Dumped(func() ([]netlink.Route, error) {
				return h.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: table}, netlink.RT_FILTER_TABLE)
			})
			if err != nil {
				return err
			}
			routes += len(list)
		}
		all, err := kernel.Dumped(func() ([]netlink.Rule, error) { return h.RuleList(netlink.FAMILY_V4) })
		if err != nil {
			return err
		}
		for _, r := range all {
			if r.Table >= 5600 && r.Table <= 5602 {
				rules++
			}
		}
		ports, err := kernel.Links(h, []string{"p0", "p1", "p2", "p3"})
		if err != nil {
			return err
		}
		for _, port := range ports {
			id, err := kernel.SuffixFilter.Program(h, port)
			if err != nil {
				return err
			}
			if id != 0 {
				programs++
			}
		}
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return routes, rules, programs
}

// The agent sets up two-level tables and keeps them. They stay when it ends, as do all
// routes, and a start with another rule removes them.
func TestRun_twoLevel(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, "b", "fat-tree:k=4", "e0.0", "a0.2", "a0.3", "h0.0.2", "h0.0.3")
	const topology = "topology: fat-tree:k=4\n"
	has := func(full bool) bool {
		routes, rules, programs := l.twoLevels("e0.0")
		if full {
			return routes >= 4 && rules == 3 && programs == 4
		}
		return routes+rules+programs == 0
	}
	p := l.child("e0.0", topology+"balance: two-level\n")
	l.within("it has tables, rules and programs", func() bool { return p.status().Switch == "e0.0" && has(true) })
	if s := p.status(); s.BalanceError != "" || s.Balance != nil {
		t.Errorf("status: %+v, %q", s.Balance, s.BalanceError)
	}
	if err := l.Do(l.id("e0.0"), func() error {
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return err
		}
		defer h.Close()
		ports, err := kernel.Links(h, []string{"p0"})
		if err != nil {
			return err
		}
		return kernel.SuffixFilter.Detach(h, ports[0])
	}); err != nil {
		t.Fatal(err)
	}
	l.within("the program is back", func() bool { return has(true) })
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.cmd.Wait()
	if !has(true) {
		t.Error("the tables have gone with the agent")
	}
	p = l.child("e0.0", topology+"balance: routes\n")
	l.within("nothing is left", func() bool { return p.status().Switch == "e0.0" && has(false) })
}

// A switch whose settings cannot be changed says that it does not hash as it should, and
// goes on.
func TestRun_ecmpReadOnly(t *testing.T) {
	l := upLab(t, "b", "fat-tree:k=4", "e0.0", "a0.2", "a0.3", "h0.0.2", "h0.0.3")
	err := l.Do(l.id("e0.0"), func() error {
		_, _, err := kernel.SetSysctl(kernel.Sysctl{Key: "net.ipv4.fib_multipath_hash_policy", Value: "0"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	p := l.child("e0.0", "topology: fat-tree:k=4\nconfigure: false\nbalance: ecmp\n", readOnly)
	l.within("it runs and says why it does not hash", func() bool { return strings.Contains(p.status().BalanceError, "read-only") })
	if v := l.hashPolicy("e0.0"); v != "0" {
		t.Errorf("the hash policy is %s, want 0", v)
	}
}

// A switch that cannot balance does not balance by what a crash has left, either.
func TestRun_balanceFails(t *testing.T) {
	l := upLab(t, "b", "fat-tree:k=4", "e0.0", "a0.2", "a0.3", "h0.0.2", "h0.0.3")
	p := l.child("e0.0", "topology: fat-tree:k=4\nconfigure: false\nbalance: drb\n")
	l.within("it runs", func() bool { s := p.status(); return s.Switch == "e0.0" && s.Balance != nil })
	p.cmd.Process.Kill()
	p.cmd.Wait()
	// A device without Ethernet's frames cannot be a port.
	kerneltest.Shell(t, l.Namespace(l.id("e0.0")), "ip link del p0 && ip tuntap add p0 mode tun")
	p = l.child("e0.0", "topology: fat-tree:k=4\nconfigure: false\nbalance: drb\n")
	l.within("it says why it does not", func() bool {
		s := p.status()
		return s.Balance == nil && strings.Contains(s.BalanceError, "port p0: frames are of type")
	})
	if v := l.hashPolicy("e0.0"); v != "3" {
		t.Errorf("the hash policy is %s, want the lab's 3", v)
	}
	if n := l.balancedPorts("e0.0"); n != 0 {
		t.Errorf("%d ports still have the program", n)
	}
}
