package stack

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/link"
	"weft/policy"
	"weft/topology"
)

// programs are two Hosts that stand for the kernels of two machines, each with
// a Gateway between it and a Tunnel.
func programs(t *testing.T, change func(i int, c *GatewayConfig)) (hosts [2]*Host, gateways [2]*Gateway, cables [2]*superMemory) {
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
		c := GatewayConfig{Programs: tun, Policy: "presto", Tunnel: &Tunnel{Underlay: under[i], Peers: []Peer{
			{Endpoint: under[1-i].LocalAddr(), Prefixes: []netip.Prefix{netip.PrefixFrom(fatTree.EmbeddedAddr(topology.NodeID(1-i)), 32)}},
		}}}
		change(i, &c)
		g, err := NewGateway(c)
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
		kernel.mtu = 1400
		h, err := New(Config{Address: fatTree.EmbeddedAddr(topology.NodeID(i)), Topology: fatTree, Device: kernel, Policy: "ecmp", Seed: 1})
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
		hosts, gateways, _ := programs(t, func(_ int, c *GatewayConfig) { c.Policy = name })
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
	hosts, gateways, cables := programs(t, func(int, *GatewayConfig) {})
	transferHashed(t, hosts[0], hosts[1], 6e6, func(sent int) {
		if sent > 2e6 {
			cables[1].max.Store(0)
		}
	})
	// The cable may be too short for so many at once: those count as refused.
	if h, in := hosts[1].Stats().Ingress, gateways[1].Stats(); h.Packets < 1000 {
		t.Errorf("%+v\n%+v", h, in)
	}
}

// Another policy, and no connection notices.
func TestGateway_policyChangesUnderway(t *testing.T) {
	hosts, gateways, _ := programs(t, func(_ int, c *GatewayConfig) { c.Policy = "ecmp" })
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

// broken is a device that fails as soon as it is told to.
type broken struct {
	*superMemory
	fail chan struct{}
}

func (b broken) ReadSuper([][]byte, []int, int) (int, error) {
	<-b.fail
	return 0, errors.New("broken")
}

func TestGateway_endsWhenItsDeviceFails(t *testing.T) {
	near, far := superPair(1500)
	fabric, other := superPair(1500)
	defer far.Close()
	defer other.Close()
	b := broken{near, make(chan struct{})}
	g, err := NewGateway(GatewayConfig{Address: fatTree.Node(0).Addr, Topology: fatTree, Programs: b, Fabric: fabric})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	select {
	case <-g.Done():
		t.Error("ended at once")
	case <-time.After(20 * time.Millisecond):
	}
	close(b.fail)
	select {
	case <-g.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("goes on")
	}
	if err := g.Err(); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("%v", err)
	}
}

func TestNewGateway_rejects(t *testing.T) {
	near, far := superPair(1500)
	defer near.Close()
	defer far.Close()
	good := GatewayConfig{Address: fatTree.Node(0).Addr, Topology: fatTree, Programs: near, Fabric: far}
	for want, change := range map[string]func(c *GatewayConfig){
		"Programs": func(c *GatewayConfig) { c.Programs = nil },
		"Topology": func(c *GatewayConfig) { c.Topology = nil },
		"Address":  func(c *GatewayConfig) { c.Address = netip.MustParseAddr("192.0.2.1") },
		"Policy":   func(c *GatewayConfig) { c.Policy = "nosuch" },
		"Carrier":  func(c *GatewayConfig) { c.Carrier = encap.CarrierMPLS },
		"Tunnel":   func(c *GatewayConfig) { c.Tunnel = &Tunnel{} },
		"Underlay": func(c *GatewayConfig) { c.Tunnel, c.Topology, c.Fabric = &Tunnel{}, nil, nil },
	} {
		c := good
		change(&c)
		if g, err := NewGateway(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; does not name %s", err, want)
			if g != nil {
				g.Close()
			}
		}
	}
}

// Frames come back to where they can be used again, whatever their size.
func TestFramePool_hasRoom(t *testing.T) {
	var p framePool
	for n := 1; n <= superBuffer; n = n*3/2 + 1 {
		f := p.get(n)
		if len(f.buf) < n || len(f.buf) > max(2*n, smallest) {
			t.Errorf("%d bytes for %d", len(f.buf), n)
		}
		p.put(f)
		if p.get(n) != f {
			t.Errorf("a frame of %d bytes is not used again", len(f.buf))
		}
	}
}

// Whatever arrives: what programs get is what was sent, packet for packet.
func FuzzInward(f *testing.F) {
	f.Add(dataPacket(1, 100), 0)
	f.Add(dataPacket(1, 3000), 1000)
	f.Fuzz(func(t *testing.T, b []byte, mss int) {
		var pkt flowcell.Packet
		if len(b) > 60000 || pkt.Parse(b) != nil {
			return
		}
		for _, maximum := range []int{link.MaxSuperLen, 0} {
			r := &recorder{max: maximum}
			w := newInward(r)
			a := arrived{b: b[:pkt.Length], slot: lent, mss: min(max(mss, 0), 1<<16-1)}
			if !pkt.IsTCP() {
				a.mss = 0
			}
			w.deliver([]*frame{w.packet(&pkt, &a), w.packet(&pkt, &a)})
			var payload []byte
			for _, p := range r.written {
				var got flowcell.Packet
				if err := got.Parse(p.packet); err != nil || got.Flow != pkt.Flow {
					t.Fatalf("%x: %v", p.packet, err)
				}
				payload = append(payload, p.packet[len(p.packet)-int(got.Payload):]...)
			}
			want := b[pkt.Length-int(pkt.Payload) : pkt.Length]
			if w.drops == 0 && !bytes.Equal(payload, append(bytes.Clone(want), want...)) {
				t.Fatalf("%d bytes of payload, want twice %d", len(payload), len(want))
			}
		}
	})
}
