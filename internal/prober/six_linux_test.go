package prober

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"testing"

	"weft/encap"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/liveness"
	"weft/topology"
	"weft/topology/graph"
)

// six is a fabric of namespaces that speaks IPv6 alone: hosts a and b at leaf1 and leaf2,
// and two spines that take IPv6 out of IPv6.
type six struct {
	*graph.Graph
	ns map[string]string
}

// addr6 is the address of a node.
func (f *six) addr6(name string) netip.Addr {
	id, _ := f.ByName(name)
	return f.Node(id).Addresses[0]
}

func (f *six) sh(t *testing.T, node, script string) {
	t.Helper()
	kerneltest.Shell(t, f.ns[node], "set -e\n"+script)
}

func newSix(t *testing.T) *six {
	t.Helper()
	addr := func(s string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(s)} }
	net := func(s string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(s)} }
	g, err := graph.New(graph.Spec{
		Nodes: []graph.Node{
			{Name: "a", Addresses: addr("2001:db8:1::2")}, {Name: "b", Addresses: addr("2001:db8:2::2")},
			{Name: "leaf1", Tier: 1, Addresses: addr("2001:db8:1::1"), Prefixes: net("2001:db8:1::/64")},
			{Name: "leaf2", Tier: 1, Addresses: addr("2001:db8:2::1"), Prefixes: net("2001:db8:2::/64")},
			{Name: "spine1", Tier: 2, Addresses: addr("2001:db8:ffff::1")},
			{Name: "spine2", Tier: 2, Addresses: addr("2001:db8:ffff::2")},
		},
		Links: []graph.Link{
			{Ends: [2]string{"a", "leaf1"}}, {Ends: [2]string{"b", "leaf2"}},
			{Ends: [2]string{"leaf1", "spine1"}}, {Ends: [2]string{"leaf1", "spine2"}},
			{Ends: [2]string{"leaf2", "spine1"}}, {Ends: [2]string{"leaf2", "spine2"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &six{Graph: g, ns: make(map[string]string)}
	for id := range graph.NodeID(g.NumNodes()) {
		name := g.Node(id).Name
		f.ns[name] = kerneltest.Namespace(t, name)
		f.sh(t, name, `echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
			echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad
			ip link set lo up`)
	}
	for i, host := range []string{"a", "b"} {
		leaf := fmt.Sprintf("leaf%d", i+1)
		f.sh(t, host, `echo 0 >/proc/sys/net/ipv6/conf/all/forwarding
			ip link add eth1 type veth peer name h1 netns `+f.ns[leaf])
		f.sh(t, leaf, fmt.Sprintf("ip addr add 2001:db8:%d::1/64 dev h1 nodad; ip addr add fe80::1/64 dev h1 nodad; ip link set h1 up", i+1))
		f.sh(t, host, fmt.Sprintf("ip addr add 2001:db8:%d::2/64 dev eth1 nodad; ip link set eth1 up; ip -6 route add default via fe80::1 dev eth1 mtu 1300", i+1)) // what the kernel believes of paths makes no probe shorter
		for s := 1; s <= 2; s++ {
			spine := fmt.Sprintf("spine%d", s)
			f.sh(t, leaf, fmt.Sprintf("ip link add s%d type veth peer name l%d netns %s; ip addr add fe80::b/64 dev s%d nodad; ip link set s%d up", s, i+1, f.ns[spine], s, s))
			f.sh(t, spine, fmt.Sprintf("ip addr add fe80::a/64 dev l%d nodad; ip link set l%d up; ip -6 route add 2001:db8:%d::/64 via fe80::b dev l%d", i+1, i+1, i+1, i+1))
			f.sh(t, leaf, fmt.Sprintf("ip -6 route add 2001:db8:ffff::%d/128 via fe80::a dev s%d", s, s))
		}
		f.sh(t, leaf, fmt.Sprintf("ip -6 route add 2001:db8:%d::/64 nexthop via fe80::a dev s1 nexthop via fe80::a dev s2", 2-i))
	}
	for s := 1; s <= 2; s++ {
		f.decapsulate(t, fmt.Sprintf("spine%d", s))
	}
	return f
}

// decapsulate has a switch take off outer headers by its tunnel device, or where the kernel
// has none by End.DT6, which needs no routing header (RFC 8986 §4.6).
func (f *six) decapsulate(t *testing.T, spine string) {
	t.Helper()
	err := kernel.InNamespace(f.ns[spine], func() error {
		self := f.addr6(spine).String()
		tunnel := exec.Command("sh", "-c", "ip addr add "+self+"/128 dev lo nodad && ip link add decap type ip6tnl mode ip6ip6 local "+self+" remote :: && ip link set decap up")
		if err := tunnel.Run(); err == nil {
			return nil
		}
		local := exec.Command("sh", "-c", "ip addr del "+self+"/128 dev lo; ip -6 route add "+self+"/128 encap seg6local action End.DT6 table 254 dev l1")
		if out, err := local.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if err != nil {
		t.Skipf("the kernel has neither ip6tnl nor seg6local: %v", err)
	}
}

// open runs a Prober at a host.
func (f *six) open(t *testing.T, name string, gateway netip.Addr) *host {
	t.Helper()
	top, err := topology.FromGraph(f.Graph, f.addr6(name))
	if err != nil {
		t.Fatal(err)
	}
	return openHost(t, top.Node(0), func(do func() error) error { return kernel.InNamespace(f.ns[name], do) },
		Config{Interface: "eth1", Topology: top, Seed: 1 + uint64(len(name)), Gateway: gateway})
}

// Over IPv6 boomerangs come home and peers answer, by a raw socket and by a gateway's
// link-local address. A switch that drops in silence is found, near and far, and so is a
// link of a smaller MTU, of which the kernel tells by ICMPv6.
func TestProber_overIPv6(t *testing.T) {
	slowtest.System(t)
	for name, gateway := range map[string]netip.Addr{"routed": {}, "by a gateway": netip.MustParseAddr("fe80::1")} {
		t.Run(name, func(t *testing.T) { overIPv6(t, gateway) })
	}
}

func overIPv6(t *testing.T, gateway netip.Addr) {
	f := newSix(t)
	a, b := f.open(t, "a", gateway), f.open(t, "b", gateway)
	var listener net.Listener
	var conn net.Conn
	if err := kernel.InNamespace(f.ns["b"], func() (err error) {
		listener, err = net.Listen("tcp6", netip.AddrPortFrom(f.addr6("b"), 7000).String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := kernel.InNamespace(f.ns["a"], func() (err error) {
		conn, err = net.DialTimeout("tcp6", listener.Addr().String(), patience)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	rack, _ := a.Topology().RackAt(f.addr6("b"))
	carried := func(mtu int) {
		t.Helper()
		eventually(t, func() (string, bool) {
			near, far := 0, 0
			for _, p := range a.Paths() {
				switch {
				case p.State != liveness.Up || p.RTT == 0:
				case p.Dst == f.addr6("b"):
					far++
				default:
					near++
				}
			}
			c := a.Carriage()
			return fmt.Sprintf("%d boomerangs and %d paths, plain %v, MTU %d, %q: %+v, there %+v", near, far, c.Plain(rack), c.MTU(rack), c.Why(rack), a.Stats(), b.Stats()),
				near == 2 && far == 2 && !c.Plain(rack) && c.MTU(rack) == mtu
		})
	}
	carried(1500 - encap.CarrierIPIP.OverheadFrom(a.Addr))

	f.sh(t, "spine1", "ip -6 route del 2001:db8:2::/64; ip -6 route add blackhole 2001:db8:2::/64")
	a.eventuallyDown(t, "2001:db8:2::2 by spine1")
	f.sh(t, "spine1", "ip -6 route del blackhole 2001:db8:2::/64; ip -6 route add 2001:db8:2::/64 via fe80::b dev l2")
	a.eventuallyDown(t)

	f.sh(t, "spine2", "ip -6 route del 2001:db8:1::/64; ip -6 route add blackhole 2001:db8:1::/64")
	a.eventuallyDown(t, "leaf1-spine2")
	f.sh(t, "spine2", "ip -6 route del blackhole 2001:db8:1::/64; ip -6 route add 2001:db8:1::/64 via fe80::b dev l1")
	a.eventuallyDown(t)

	f.sh(t, "leaf1", "ip link set s1 mtu 1400; ip link set s2 mtu 1400")
	carried(1360)
	if st := a.Stats(); st.Watcher.TooBig == 0 {
		t.Errorf("no error of ICMPv6 was heeded: %+v", st)
	}
	f.sh(t, "leaf1", "ip link set s1 mtu 1500; ip link set s2 mtu 1500")
	carried(1460)
	for _, h := range []*host{a, b} {
		if st := h.Stats(); st.Echoed == 0 && h == b || st.Forged+st.Refused+st.Unsent > 0 {
			t.Errorf("%s: %+v", h.Name, st)
		}
	}
}
