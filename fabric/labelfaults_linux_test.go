package fabric

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// waitCount is how long counters may take: they are the kernel's, per CPU.
const waitCount = time.Second

// randomStacks are addresses as senders make them and as they must not: of ports
// that are there, that are not, of early ends, and of noise.
func randomStacks(ports int) (stacks [][16]byte, seed uint64) {
	seed = 6
	r := rand.New(rand.NewPCG(seed, 0))
	for range 60 {
		a := encap.SIDBlock.Addr().As16()
		for i := 2; i < 2+r.IntN(15); i++ {
			a[i] = byte(1 + r.IntN(ports+1))
			if r.IntN(8) == 0 {
				a[i] = byte(r.IntN(256))
			}
		}
		stacks = append(stacks, a)
	}
	return stacks, seed
}

// A port that is set down takes its routes with it, which come back; the other
// labels stay. Hosts must choose other paths: there is no other way for a label.
func TestLabels_failAndHeal(t *testing.T) {
	l := upLabelLab(t, LabConfig{Topology: kerneltest.Topology(t, "fat-tree:k=4")})
	top := l.Config.Topology
	src, dst := kerneltest.Node(t, top, "h0.0.2"), kerneltest.Node(t, top, "h1.0.2")
	from, to := openWire(t, l, src.ID, 0), openWire(t, l, dst.ID, 0)
	set := top.Paths(src.ID, dst.ID)
	send := func(n int) []byte {
		addr, err := encap.SIDs(set.Labels(n))
		if err != nil {
			t.Fatal(err)
		}
		inner := kerneltest.IPv4{ID: uint16(n), Frag: 0x4000, TTL: 64, Protocol: 253, Src: src.Addr, Dst: dst.Addr}
		from.SendLabelled(t, ipv6{next: 4, hops: 64, src: topology.Addr6(src.Addr), dst: addr}.bytes(inner.Bytes(nil)))
		return inner.Bytes(nil)
	}
	// The core's end goes down: its label for pod 1 is a label of no port.
	mustFail(t, l, "a1.2-3.0", FailLoud)
	send(0)
	core := kerneltest.Node(t, top, "3.0")
	kerneltest.Within(t, waitCount, "the core drops and counts", func() bool { return labelCounters(t, l, core).Unknown == 1 })
	for _, n := range []int{1, 2, 3} {
		send(n)
		if got := to.Receive(t); got[5] != byte(n) {
			t.Errorf("path %d: got the packet of path %d", n, got[5])
		}
	}
	mustHeal(t, l)
	kerneltest.Within(t, waitCount, "the link is up", func() bool { return portTo(t, l, "a1.2", core.Name).Up })
	send(0)
	if got := to.Receive(t); got[5] != 0 {
		t.Errorf("healed: got the packet of path %d", got[5])
	}
	// Decapsulation is by the route of one port; there must be others.
	mustFail(t, l, "h1.0.3-e1.0", FailLoud)
	mustFail(t, l, "e1.0-a1.3", FailLoud)
	send(1)
	if got := to.Receive(t); got[5] != 1 {
		t.Errorf("with ports of the edge switch down: got the packet of path %d", got[5])
	}
	mustHeal(t, l)
	wantAsBuilt(t, l)
	for n := range l.Config.nodes() {
		err := l.Do(n.ID, func() error {
			neighbours, err := netlink.NeighList(0, netlink.FAMILY_V6)
			neighbours = slices.DeleteFunc(neighbours, func(n netlink.Neigh) bool { return n.State != netlink.NUD_PERMANENT })
			if want := len(l.Config.ports(n.ID)); len(neighbours) != want {
				t.Errorf("%s knows %d IPv6 neighbours, want %d", n.Name, len(neighbours), want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

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
		c, err = readEdgeCounters(h, ports)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A lab of some nodes has labels for the ports that it has.
func TestLabels_ofPartOfAFabric(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	cfg := LabConfig{Topology: top}
	for _, name := range []string{"h0.0.2", "e0.0", "a0.3"} {
		cfg.Only = append(cfg.Only, kerneltest.Node(t, top, name).ID)
	}
	l := upLabelLab(t, cfg)
	wantAsBuilt(t, l)
	p, err := l.Plan(kerneltest.Node(t, top, "e0.0").ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Ports) != 2 || len(p.SIDs) != 3 || len(p.Gate) != 1 {
		t.Errorf("%d ports, labels %+v, gate %+v", len(p.Ports), p.SIDs, p.Gate)
	}
	back, err := Open(l.Config.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if !back.Config.SRv6 {
		t.Error("the lab has forgotten that it forwards by labels")
	}
}
