package stack

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weft/internal/dataplane"
	"weft/link"
	"weft/policy"
	"weft/topology"
)

// programs are two Hosts that stand for the kernels of two machines, each with a Gateway in
// front of it.
func programs(t *testing.T, change func(i int, c *dataplane.GatewayConfig)) (hosts [2]*Host, gateways [2]*dataplane.Gateway, cables [2]*superMemory) {
	t.Helper()
	var under [2]*link.UDP
	for i := range under {
		u, err := link.OpenUDP(link.UDPConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Paths: 4})
		if err != nil {
			t.Fatal(err)
		}
		under[i] = u
	}
	for i := range hosts {
		kernel, tun := superPair(1500)
		cables[i] = tun
		c := dataplane.GatewayConfig{Programs: tun, Policy: "presto", Tunnel: &dataplane.Tunnel{Underlay: under[i], Peers: []dataplane.Peer{
			{Endpoint: under[1-i].LocalAddr(), Prefixes: []netip.Prefix{netip.PrefixFrom(fatTree.EmbeddedAddr(topology.NodeID(1-i)), 32)}},
		}}}
		change(i, &c)
		g, err := dataplane.NewGateway(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
		gateways[i] = g
		// Neighbours in a rack, so that they leave their packets as they are; of
		// an MTU that leaves room for the datagrams.
		kernel.MTUBytes = 1400
		h, err := New(Config{Address: fatTree.EmbeddedAddr(topology.NodeID(i)), Topology: fatTree, Device: kernel, Policy: "ecmp", Simulation: Simulation{Seed: 1}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		hosts[i] = h
	}
	return hosts, gateways, cables
}

func TestGateway_carriesTCPOverATunnel(t *testing.T) {
	for _, name := range []string{"presto", "drb"} {
		hosts, gateways, _ := programs(t, func(_ int, c *dataplane.GatewayConfig) { c.Policy = name })
		transferHashed(t, hosts[0], hosts[1], 10e6, func(int) {})
		out, in := gateways[0].Stats(), gateways[1].Stats()
		if out.Egress.Supers < 100 || in.Ingress.Packets == 0 {
			t.Errorf("%s: %+v\n%+v", name, out, in)
		}
		if used := slices.IndexFunc(out.Paths, func(p PathStats) bool { return p.Packets < 100 }); len(out.Paths) != 4 || used >= 0 {
			t.Errorf("%s: by %+v", name, out.Paths)
		}
		if name == "drb" && in.Ingress.Merged == 0 {
			t.Errorf("nothing merged: %+v", in.Ingress)
		}
	}
}

// The TUN of the receiver loses its offloads: programs get packets one by one.
func TestGateway_deliversWithoutOffloads(t *testing.T) {
	hosts, gateways, cables := programs(t, func(int, *dataplane.GatewayConfig) {})
	transferHashed(t, hosts[0], hosts[1], 6e6, func(sent int) {
		if sent > 2e6 {
			cables[1].Max.Store(0)
		}
	})
	// The cable may be too short for so many at once: those count as refused.
	if h, in := hosts[1].Stats().Ingress, gateways[1].Stats(); h.Packets < 1000 {
		t.Errorf("%+v\n%+v", h, in)
	}
}

// Another policy, and no connection notices.
func TestGateway_policyChangesUnderway(t *testing.T) {
	hosts, gateways, _ := programs(t, func(_ int, c *dataplane.GatewayConfig) { c.Policy = "ecmp" })
	if err := gateways[0].SetPolicy("none", policy.Options{}); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("policy none: %v", err)
	}
	changed := false
	transferHashed(t, hosts[0], hosts[1], 10e6, func(sent int) {
		if !changed && sent > 3e6 {
			changed = true
			if err := gateways[0].SetPolicy("presto", policy.Options{}); err != nil {
				t.Error(err)
			}
		}
	})
	out := gateways[0].Stats()
	least := slices.MinFunc(out.Paths, func(a, b PathStats) int { return int(a.Packets) - int(b.Packets) })
	if len(out.Paths) != 4 || least.Packets < 200 {
		t.Errorf("by %+v", out.Paths)
	}
}
