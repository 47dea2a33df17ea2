package fabric

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"weft/encap"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// An agent's routes bring the labels of a port back, too, with its addresses.
func TestRoutes_resyncRestoresLabels(t *testing.T) {
	kerneltest.NeedRoot(t)
	needSIDs(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	p := labelPlan(t, top, kerneltest.Node(t, top, "a2.2").ID, Options{SRv6: true})
	ns := portedNamespace(t, "resync", p)
	applyNamed(t, ns, p)
	const show = "ip -6 route show proto 87; ip -6 address show to fe80::7765:6674:0:0/96 | grep -c inet6"
	built := kerneltest.Shell(t, ns, show)
	r := openRoutes(t, ns, p)
	kerneltest.Shell(t, ns, "ip link set p2 down")
	if got := kerneltest.Shell(t, ns, "ip -6 route show proto 87"); strings.Contains(got, "p2") {
		t.Fatalf("the kernel keeps routes over a port that is down:\n%s", got)
	}
	if _, err := r.Resync(); err != nil {
		t.Errorf("while a port is down: %v", err)
	}
	kerneltest.Shell(t, ns, "ip link set p2 up")
	if n, err := r.Resync(); n == 0 || err != nil {
		t.Errorf("%d changes, %v", n, err)
	}
	if got := kerneltest.Shell(t, ns, show); got != built {
		t.Errorf("after:\n%s\nbefore:\n%s", got, built)
	}
	if n, err := r.Resync(); n != 0 || err != nil {
		t.Errorf("again: %d changes, %v", n, err)
	}
}

// Applying again changes nothing; what is no longer planned goes, and what
// others have made stays.
func TestApply_labels(t *testing.T) {
	kerneltest.NeedRoot(t)
	needSIDs(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	for _, node := range []string{"h0.0.2", "e0.0", "a2.2", "3.0"} {
		p := labelPlan(t, top, kerneltest.Node(t, top, node).ID, Options{SRv6: true})
		ns := portedNamespace(t, "l"+p.Node, p)
		if r := applyNamed(t, ns, p); !slices.Equal(r.Labels, []encap.Carrier{encap.CarrierSRv6}) {
			t.Errorf("%s: labels by %v", node, r.Labels)
		}
		if r := applyNamed(t, ns, p); r.Changed != 0 {
			t.Errorf("%s: %d changes the second time", node, r.Changed)
		}
		if node != "e0.0" {
			continue
		}
		kerneltest.Shell(t, ns, "ip -6 route add 2001:db8::/32 dev p0")
		less := labelPlan(t, top.Without(top.Ports(kerneltest.Node(t, top, node).ID)[2].Link), kerneltest.Node(t, top, node).ID, Options{SRv6: true})
		// Its route, its label and its decapsulation; and the IPv4 plan's own.
		applyNamed(t, ns, less)
		if got := kerneltest.Shell(t, ns, "ip -6 route show proto 87"); strings.Contains(got, "p2") {
			t.Errorf("port p2 is still in use:\n%s", got)
		}
		r := applyNamed(t, ns, mustPlan(t, top, node))
		if got := kerneltest.Shell(t, ns, "ip -6 route show proto 87"); got != "" || r.Labels != nil {
			t.Errorf("without labels: %v\n%s", r.Labels, got)
		}
		if got := kerneltest.Shell(t, ns, "ip -6 route show 2001:db8::/32"); got == "" {
			t.Error("another's route is gone")
		}
		if got := edgeCounters(t, ns, p); got != nil {
			t.Error("the edge's program is still there")
		}
	}
}

// What plan prints and what Apply does is the same.
func TestApply_labelsEqualCommands(t *testing.T) {
	kerneltest.NeedRoot(t)
	needSIDs(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	for _, node := range []string{"h0.0.2", "e0.0", "a2.2", "3.0"} {
		p := labelPlan(t, top, kerneltest.Node(t, top, node).ID, Options{SRv6: true})
		applied, pasted := portedNamespace(t, "la"+p.Node, p), portedNamespace(t, "lp"+p.Node, p)
		r := applyNamed(t, applied, p)
		script := "set -e\n"
		for _, c := range p.Commands() {
			if r.Decap == DecapIPIP || !strings.Contains(c, "weft-decap") {
				script += c + "\n"
			}
		}
		kerneltest.Shell(t, pasted, script)
		for _, show := range []string{"ip -6 route show proto 87", "ip -br -6 address show scope global",
			"ip -6 address show to fe80::7765:6674:0:0/96 | grep -c inet6", "sysctl -a -r 'ipv6.conf.(all.forwarding|p.*disable_ipv6|.*seg6_enabled)'"} {
			a, b := kerneltest.Shell(t, applied, show), kerneltest.Shell(t, pasted, show)
			if a != b || a == "" {
				t.Errorf("%s: %s differs; applied:\n%s\npasted:\n%s", node, show, a, b)
			}
		}
	}
}

// A kernel without MPLS says so, and does the rest.
func TestApply_mpls(t *testing.T) {
	kerneltest.NeedRoot(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	p := labelPlan(t, top, kerneltest.Node(t, top, "a2.2").ID, Options{MPLS: true})
	ns := portedNamespace(t, "mpls", p)
	r := applyNamed(t, ns, p)
	if !hasMPLS() {
		if !slices.ContainsFunc(r.Notes, func(s string) bool { return strings.Contains(s, "mpls_router") }) || r.Labels != nil {
			t.Errorf("notes %q, labels by %v", r.Notes, r.Labels)
		}
		t.Skip("the kernel has no module mpls_router: routes of MPLS labels are planned, not tried")
	}
	if !slices.Equal(r.Labels, []encap.Carrier{encap.CarrierMPLS}) {
		t.Errorf("labels by %v", r.Labels)
	}
	if r := applyNamed(t, ns, p); r.Changed != 0 {
		t.Errorf("%d changes the second time", r.Changed)
	}
	applyNamed(t, ns, mustPlan(t, top, "a2.2"))
	if got := kerneltest.Shell(t, ns, "ip -f mpls route show proto 87"); got != "" {
		t.Errorf("no longer planned:\n%s", got)
	}
}

func edgeCounters(t *testing.T, ns string, p NodePlan) (c *EdgeCounters) {
	t.Helper()
	err := kernel.InNamespace(ns, func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer h.Close()
		ports, err := p.links(h)
		if err != nil {
			return err
		}
		c, err = ReadEdgeCounters(h, ports)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func needSIDs(t testing.TB) {
	t.Helper()
	p := labelPlan(t, kerneltest.Topology(t, "fat-tree:k=2"), 2, Options{SRv6: true}) // e0.0
	ns := portedNamespace(t, "probe", p)
	defer kernel.DeleteNamespace(ns)
	err := kernel.InNamespace(ns, func() error { _, err := Apply(p); return err })
	if errors.Is(err, ErrNoSIDs) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
