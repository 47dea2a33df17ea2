package hostsetup

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/hostprog"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/policy"
	"weft/topology"
)

// hostNamespace is a namespace with an uplink p0, its reverse path filter
// strict, and the device weft0.
func hostNamespace(t *testing.T, node string) string {
	t.Helper()
	kerneltest.NeedRoot(t)
	for _, tool := range []string{"ip", "sysctl", "sh"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	ns := kerneltest.Namespace(t, node)
	removeDir := func() {
		kernel.InNamespace(ns, func() error {
			if dir, err := Dir(); err == nil {
				os.RemoveAll(dir)
			}
			return nil
		})
	}
	removeDir() // that of a namespace which is gone, and whose inode the kernel has used again
	t.Cleanup(removeDir)
	// Link-local addresses would come up some time later.
	kerneltest.Shell(t, ns, `sysctl -qw net.ipv6.conf.default.addr_gen_mode=1
		ip link add p0 type veth peer name far0
		ip link add weft0 type veth peer name far1
		for l in lo p0 far0 weft0 far1; do ip link set $l up; done
		ip address add 10.0.0.2/32 dev p0
		ip route add default via 10.0.0.1 dev p0 onlink
		sysctl -qw net.ipv4.conf.p0.rp_filter=1`)
	// The kernel gives a device its IPv6 routes when it notices that the link is up,
	// up to a second later.
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		routes := kerneltest.Shell(t, ns, "ip -6 route show table all")
		if !slices.ContainsFunc([]string{"p0", "far0", "weft0", "far1"}, func(l string) bool { return !strings.Contains(routes, "ff00::/8 dev "+l+" ") }) {
			return ns
		}
		if time.Now().After(end) {
			t.Fatalf("the devices have no routes:\n%s", routes)
		}
	}
}

// configuration is all that a set-up may change, weft0's own settings left out:
// they end with it.
func configuration(t *testing.T, ns string) string {
	t.Helper()
	s := kerneltest.Shell(t, ns, `ip rule; ip -6 rule; ip route show table all; ip -6 route show table all
		sysctl -a -r 'net.ipv[46].conf' 2>/dev/null | grep -v conf.weft0
		for d in p0 weft0; do tc filter show dev $d ingress; tc filter show dev $d egress; done`)
	for _, must := range []string{"32766:", "default via 10.0.0.1", "p0.rp_filter = "} {
		if !strings.Contains(s, must) {
			t.Fatalf("no %q in\n%s", must, s)
		}
	}
	return s
}

// differ says what is in one text and not in the other.
func differ(t *testing.T, what, before, after string) {
	t.Helper()
	if before == after {
		return
	}
	t.Errorf("%s is not as before", what)
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	for _, l := range a {
		if !strings.Contains(after, l) {
			t.Errorf("  gone: %s", l)
		}
	}
	for _, l := range b {
		if !strings.Contains(before, l) {
			t.Errorf("  new: %s", l)
		}
	}
}

// in runs a step in a namespace, where it must succeed.
func in(t *testing.T, ns string, f func() error) {
	t.Helper()
	if err := kernel.InNamespace(ns, f); err != nil {
		t.Fatal(err)
	}
}

// strictGateway is a plan that changes something of every kind.
func strictGateway(t *testing.T) Plan {
	t.Helper()
	o := gatewayOptions()
	o.Strict = []string{"p0"}
	o.Carrier, o.Advertised = encap.CarrierSRv6, true
	o.Tunnel = prefixes("10.9.0.0/24", "fd00:9::/64")
	o.Endpoints = tunnelOptions().Endpoints
	o.Six, o.TUN6 = sixOptions(), true
	p, err := PlanFor(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func applyHost(t *testing.T, ns string, p Plan) (s *Setup) {
	t.Helper()
	in(t, ns, func() (err error) {
		s, err = Apply(p)
		return err
	})
	return s
}

// What is as planned needs no repair.
func TestRepair_findsNothingBehindApply(t *testing.T) {
	ns := hostNamespace(t, "n")
	plan := strictGateway(t)
	s := applyHost(t, ns, plan)
	in(t, ns, func() error {
		for range 2 {
			if did, err := s.Repair(plan); err != nil || len(did) > 0 {
				t.Errorf("repaired %q, %v", did, err)
			}
		}
		return s.Restore()
	})
}

// die imitates the end of a process: the kernel closes what it has open.
func (s *Setup) die() {
	s.h.Close()
	s.kept.close()
	s.lock.Release()
}

func TestApplyHost_restoreLeavesNothing(t *testing.T) {
	ns := hostNamespace(t, "restore")
	before := configuration(t, ns)
	s := applyHost(t, ns, strictGateway(t))
	if during := configuration(t, ns); !strings.Contains(during, "5741:") || !strings.Contains(during, "p0.rp_filter = 2") || !strings.Contains(during, "5f00::/16 via fe80::7765:6674:a00:1") || strings.Contains(during, "5740:\t") {
		t.Errorf("applied, nothing diverted yet:\n%s", during)
	}
	in(t, ns, s.Divert)
	if during := configuration(t, ns); !strings.Contains(during, "5740:\tfrom all iif lo ipproto tcp lookup 5740") {
		t.Errorf("diverted:\n%s", during)
	}
	in(t, ns, s.Undivert)
	if during := configuration(t, ns); strings.Contains(during, "5740:\t") || !strings.Contains(during, "5741:") {
		t.Errorf("no longer diverted:\n%s", during)
	}
	in(t, ns, s.Restore)
	in(t, ns, s.Restore)
	differ(t, "the configuration", before, configuration(t, ns))
	in(t, ns, func() error {
		dir, err := Dir()
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("left: %s (%v)", dir, err)
		}
		return err
	})
}

func TestApplyHost_equalsCommands(t *testing.T) {
	p := strictGateway(t)
	applied, pasted := hostNamespace(t, "applied"), hostNamespace(t, "pasted")
	s := applyHost(t, applied, p)
	in(t, applied, s.Divert)
	kerneltest.Shell(t, pasted, "set -e\n"+strings.Join(p.Commands(), "\n"))
	for _, show := range []string{"ip rule", "ip -6 rule", "ip route show table 5740", "ip route show table 5741", "ip -6 route show table 5740", "sysctl -a -r 'conf.(p0|weft0)'"} {
		a, b := kerneltest.Shell(t, applied, show), kerneltest.Shell(t, pasted, show)
		if a != b || a == "" {
			t.Errorf("%s differs; applied:\n%s\npasted:\n%s", show, a, b)
		}
	}
	in(t, applied, s.Restore)
}

func TestApplyHost_afterACrashRemembersWhatWasBefore(t *testing.T) {
	ns := hostNamespace(t, "crash")
	before := configuration(t, ns)
	s := applyHost(t, ns, strictGateway(t))
	in(t, ns, s.Divert)
	s.die()
	// The next run finds the filter loose, and plans with that; and its plan has
	// fewer routes.
	p, err := PlanFor(gatewayOptions())
	if err != nil {
		t.Fatal(err)
	}
	s = applyHost(t, ns, p)
	if now := configuration(t, ns); strings.Contains(now, "5740:\t") || strings.Contains(now, "fd00:9::") {
		t.Errorf("what the crash left is still there:\n%s", now)
	}
	in(t, ns, s.Restore)
	differ(t, "the configuration", before, configuration(t, ns))
}

func TestCleanupHost(t *testing.T) {
	ns := hostNamespace(t, "cleanup")
	before := configuration(t, ns)
	cleanup := func() (removed []string, err error) {
		kernel.InNamespace(ns, func() error {
			removed, err = Cleanup()
			return nil
		})
		return removed, err
	}
	s := applyHost(t, ns, strictGateway(t))
	in(t, ns, s.Divert)
	if _, err := cleanup(); err == nil || !strings.Contains(err.Error(), "in use by weft, process") {
		t.Errorf("while a daemon runs: %v", err)
	}
	in(t, ns, func() error { return attachSomeOffload() })
	s.die()
	removed, err := cleanup()
	if got := strings.Join(removed, ", "); err != nil || got != "1 program, 12 rules, 13 routes, 3 settings, 1 address" {
		t.Errorf("removed %s; %v", got, err)
	}
	differ(t, "the configuration", before, configuration(t, ns))
	if removed, err := cleanup(); len(removed) > 0 || err != nil {
		t.Errorf("again: %v, %v", removed, err)
	}
	in(t, ns, func() error {
		dir, err := Dir()
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("left: %s (%v)", dir, err)
		}
		return err
	})
}

func TestApplyHost_leavesOthersRulesAndRoutesAlone(t *testing.T) {
	ns := hostNamespace(t, "others")
	kerneltest.Shell(t, ns, `ip rule add pref 5740 from 192.0.2.1 lookup 5740
		ip rule add pref 5741 iif lo lookup 5741
		ip route add 192.0.2.0/24 dev p0 table 5741`)
	before := configuration(t, ns)
	s := applyHost(t, ns, strictGateway(t))
	in(t, ns, s.Restore)
	differ(t, "the configuration", before, configuration(t, ns))
}

func TestRestore_leavesWhatSomebodyElseHasSet(t *testing.T) {
	ns := hostNamespace(t, "touched")
	s := applyHost(t, ns, strictGateway(t))
	kerneltest.Shell(t, ns, "sysctl -qw net.ipv4.conf.p0.rp_filter=0")
	in(t, ns, s.Restore)
	if now := configuration(t, ns); !strings.Contains(now, "p0.rp_filter = 0") {
		t.Error("an administrator's value was overwritten")
	}
}

func TestUpdate_changesOver(t *testing.T) {
	ns := hostNamespace(t, "update")
	before := configuration(t, ns)
	s := applyHost(t, ns, strictGateway(t))
	in(t, ns, s.Divert)
	o := gatewayOptions()
	o.Fabric = prefixes("10.0.0.0/14", "10.4.0.0/15")
	p, err := PlanFor(o)
	if err != nil {
		t.Fatal(err)
	}
	in(t, ns, func() error { return s.Update(p) })
	now := kerneltest.Shell(t, ns, "ip rule; ip route show table 5741; ip route show table 5740")
	if !strings.Contains(now, "10.4.0.0/15") || strings.Contains(now, "10.9.0.0") || !strings.Contains(now, "5740:\t") {
		t.Errorf("after the update:\n%s", now)
	}
	p.TUN = "far0"
	in(t, ns, func() error {
		if err := s.Update(p); err == nil || !strings.Contains(err.Error(), "start anew") {
			t.Errorf("another TUN: %v", err)
		}
		return nil
	})
	in(t, ns, s.Restore)
	differ(t, "the configuration", before, configuration(t, ns))
}

func TestApplyHost_failureLeavesNothing(t *testing.T) {
	ns := hostNamespace(t, "failure")
	before := configuration(t, ns)
	p := strictGateway(t)
	p.Routes[len(p.Routes)-1].Device = "nosuch0"
	kernel.InNamespace(ns, func() error {
		if _, err := Apply(p); err == nil || !strings.Contains(err.Error(), "nosuch0") {
			t.Errorf("error %v", err)
		}
		return nil
	})
	differ(t, "the configuration", before, configuration(t, ns))
}

// Without IPv6 there are no labels, and who has root is not to be sent for it.
func TestApplyHost_labelsNeedIPv6(t *testing.T) {
	ns := hostNamespace(t, "noipv6")
	kerneltest.Shell(t, ns, "sysctl -qw net.ipv6.conf.p0.disable_ipv6=1")
	before := configuration(t, ns)
	kernel.InNamespace(ns, func() error {
		_, err := Apply(strictGateway(t))
		if err == nil || !strings.Contains(err.Error(), "sysctl -w net.ipv6.conf.p0.disable_ipv6=0") || strings.Contains(err.Error(), "run as root") {
			t.Errorf("error %v", err)
		}
		return nil
	})
	differ(t, "the configuration", before, configuration(t, ns))
}

// attachSomeOffload attaches the program and dies.
func attachSomeOffload() error {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		return err
	}
	_, err = hostprog.AttachSpray(hostprog.SprayConfig{Uplink: "p0", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.2")},
		Topology: top, Policy: policy.PerFlow})
	kerneltest.ForgetPrograms()
	return err
}
