package switchd

import (
	"strings"
	"syscall"
	"testing"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
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

// What a crash leaves is taken over by the next start, with what the setting was before, or
// removed.
func TestRun_balanceCrash(t *testing.T) {
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
