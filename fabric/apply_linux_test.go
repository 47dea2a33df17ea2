package fabric

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// portedNamespace is a namespace with the planned ports, whose other ends are
// in it too.
func portedNamespace(t testing.TB, node string, p NodePlan) string {
	t.Helper()
	ns := kerneltest.Namespace(t, node)
	err := kernel.InNamespace(ns, func() error {
		for i, port := range p.Ports {
			veth := netlink.NewVeth(netlink.NewLinkAttrs())
			veth.Name, veth.PeerName = port.Name, fmt.Sprintf("far%d", i)
			if err := netlink.LinkAdd(veth); err != nil {
				return err
			}
			far, err := netlink.LinkByName(veth.PeerName)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetUp(far); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func applyNamed(t testing.TB, ns string, p NodePlan) Report {
	t.Helper()
	var r Report
	err := kernel.InNamespace(ns, func() (err error) {
		r, err = Apply(p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestApply_twiceChangesNothing(t *testing.T) {
	kerneltest.NeedRoot(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	for _, node := range []string{"h0.0.2", "e0.0", "a2.2", "3.0"} {
		p := mustPlan(t, top, node)
		ns := portedNamespace(t, p.Node, p)
		if r := applyNamed(t, ns, p); r.Changed == 0 {
			t.Errorf("%s: nothing changed the first time", node)
		}
		r := applyNamed(t, ns, p)
		if r.Changed != 0 {
			t.Errorf("%s: %d changes the second time", node, r.Changed)
		}
		if bounces := len(p.Bouncing) > 0; bounces != (r.Decap != "") {
			t.Errorf("%s: decapsulates by %q", node, r.Decap)
		}
	}
}

// A plan for a topology with a dead core takes that core's routes away, and
// leaves alone what is not from a plan.
func TestApply_replacesEarlierPlan(t *testing.T) {
	kerneltest.NeedRoot(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	p := mustPlan(t, top, "a2.2")
	ns := portedNamespace(t, "replace", p)
	applyNamed(t, ns, p)
	foreign := netip.MustParsePrefix("192.0.2.0/24")
	err := kernel.InNamespace(ns, func() error {
		return netlink.RouteAdd(&netlink.Route{Dst: kernel.IPNet(foreign), Type: 7 /* unreachable */})
	})
	if err != nil {
		t.Fatal(err)
	}
	core, err := top.Lookup("3.0")
	if err != nil {
		t.Fatal(err)
	}
	q := mustPlan(t, top.WithoutNode(core.ID), "a2.2")
	if r := applyNamed(t, ns, q); r.Changed != 2 { // the core's /32 and the default route
		t.Errorf("%d changes, want 2", r.Changed)
	}
	got := routesOf(t, ns)
	if strings.Contains(got, core.Addr.String()) {
		t.Errorf("dead core still in use:\n%s", got)
	}
	if !strings.Contains(got, foreign.String()) {
		t.Errorf("a foreign route is gone:\n%s", got)
	}
	if r := applyNamed(t, ns, p); r.Changed != 2 {
		t.Errorf("back again: %d changes, want 2", r.Changed)
	}
}

func routesOf(t *testing.T, ns string) string {
	t.Helper()
	var s []string
	err := kernel.InNamespace(ns, func() error {
		routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
		for _, r := range routes {
			s = append(s, fmt.Sprint(r))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(s, "\n")
}

// What plan prints and what Apply does must be the same configuration.
func TestApply_equalsCommands(t *testing.T) {
	kerneltest.NeedRoot(t)
	for _, tool := range []string{"ip", "sysctl", "sh"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	for _, n := range []struct{ spec, node string }{
		{"fat-tree:k=4", "h0.0.2"}, {"fat-tree:k=4", "e0.0"}, {"fat-tree:k=4", "a2.2"}, {"fat-tree:k=4", "3.0"},
		{"vl2:d0=2,d1=4,d2=4,hosts=2", "3.1"}, {weightedSpec, "e0.1"},
	} {
		node := n.node
		p := mustPlan(t, kerneltest.Topology(t, n.spec), node)
		applied := portedNamespace(t, "applied-"+p.Node, p)
		pasted := portedNamespace(t, "pasted-"+p.Node, p)
		r := applyNamed(t, applied, p)
		script := "set -e\n"
		for _, c := range p.Commands() {
			if r.Decap != DecapIPIP && strings.Contains(c, "weft-decap") {
				continue
			}
			script += c + "\n"
		}
		kerneltest.Shell(t, pasted, script)
		for _, show := range []string{"ip route", "ip rule", "ip -4 route show table all proto 87", "ip -br -4 address", "sysctl -a -r 'rp_filter|linkdown|multipath|net.ipv4.ip_forward$'"} {
			a, b := kerneltest.Shell(t, applied, show), kerneltest.Shell(t, pasted, show)
			// Link indexes differ in names such as p0@far0 only if the names do.
			if a != b {
				t.Errorf("%s: %s differs; applied:\n%s\npasted:\n%s", node, show, a, b)
			}
			if a == "" {
				t.Errorf("%s: %s shows nothing", node, show)
			}
		}
	}
}

func TestApply_missingPort(t *testing.T) {
	kerneltest.NeedRoot(t)
	err := kernel.InNamespace(kerneltest.Namespace(t, "empty"), func() error {
		_, err := Apply(mustPlan(t, kerneltest.Topology(t, "fat-tree:k=4"), "e0.0"))
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "port p0") {
		t.Errorf("error %v", err)
	}
}

func TestApply_unprivileged(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root has the capabilities")
	}
	_, err := Apply(mustPlan(t, kerneltest.Topology(t, "fat-tree:k=4"), "e0.0"))
	if err == nil || !strings.Contains(err.Error(), "no CAP_NET_ADMIN: run as root") {
		t.Errorf("Apply: %v", err)
	}
}
