package dataplane

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/dataplane/dataplanetest"
	"weft/link"
	"weft/liveness"
	"weft/policy"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// dualGateway is a Gateway of a host with addresses of both families in an operator's fabric,
// in virtual time.
type dualGateway struct {
	*Gateway
	programs, fabric *script
	clock            *handClock
	four, six        netip.Addr
}

func dualFabric(t *testing.T) *graph.Graph {
	t.Helper()
	g, err := graph.New(operator.Spec(fatTree, 1))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func newDualGateway(t *testing.T, fabric *graph.Graph, host graph.NodeID, policyName string, edits ...func(*GatewayConfig)) *dualGateway {
	t.Helper()
	own := fabric.Node(host).Addresses
	d := &dualGateway{programs: &script{recorder: recorder{max: link.MaxSuperLen}}, clock: new(handClock),
		fabric: &script{recorder: recorder{max: link.MaxSuperLen}, header: link.VnetHeader{Flags: link.VnetDataValid}}}
	c := GatewayConfig{Policy: policyName, Seed: 1, Clock: d.clock, Programs: d.programs, Fabric: d.fabric, Evidence: true}
	for _, a := range own {
		view, err := topology.FromGraph(fabric, a)
		if err != nil {
			t.Fatal(err)
		}
		if a.Is6() {
			c.Address6, c.Topology6, d.six = a, view, a
		} else {
			c.Address, c.Topology, d.four = a, view, a
		}
	}
	for _, edit := range edits {
		edit(&c)
	}
	var err error
	if d.Gateway, err = NewGateway(c); err != nil {
		t.Fatal(err)
	}
	return d
}

// to returns the address of a family.
func (d *dualGateway) to(six bool) netip.Addr {
	if six {
		return d.six
	}
	return d.four
}

// sent has programs send packets, and returns what leaves, by the device of the family.
func (d *dualGateway) sent(t *testing.T, six bool, packets ...[]byte) (left []transmitted) {
	t.Helper()
	d.programs.written, d.fabric.written, d.programs.packets = nil, nil, packets
	for len(d.programs.packets) > 0 {
		if err := d.ReadPrograms(); err != nil {
			t.Fatal(err)
		}
	}
	left, other := d.programs.written, d.fabric.written
	if six {
		left, other = other, left
	}
	if len(other) > 0 {
		t.Fatalf("IPv6 %t: %d packets by the other device: %x", six, len(other), other[0].packet)
	}
	return left
}

// Under every policy packets of both families come through the outer headers of their own,
// by several paths, and the peer gives its programs what was sent in order.
func TestGateway_carriesBothFamilies(t *testing.T) {
	fabric := dualFabric(t)
	for _, name := range policy.Names() {
		for _, six := range []bool{false, true} {
			what := fmt.Sprintf("%s, IPv6 %t", name, six)
			a, b := newDualGateway(t, fabric, 0, name), newDualGateway(t, fabric, graph.NodeID(fabric.NumHosts()-1), name)
			p, err := policy.New(name, policy.Options{})
			if err != nil {
				t.Fatal(err)
			}
			const packets, known = 600, 300
			var all [][]byte
			for i := range packets {
				all = append(all, packetTo(b.to(six), uint32(i)*1000))
			}
			left := a.sent(t, six, all...)
			if len(left) != packets {
				t.Fatalf("%s: %d packets left", what, len(left))
			}
			ways := make(map[netip.Addr][][]byte)
			var order []netip.Addr
			for i, out := range left {
				inner, way := out.packet, netip.Addr{}
				if six || !atUplink(p.Name, policy.Options{}) || p.Unit.Kind == flowcell.UnitPacket {
					inner, way = bounced(t, out.packet)
					if way.Is6() != six || len(out.packet) != len(all[i])+map[bool]int{false: 20, true: 40}[six] {
						t.Fatalf("%s: %x", what, out.packet[:80])
					}
				}
				if !bytes.Equal(inner[len(inner)-1000:], all[i][len(all[i])-1000:]) {
					t.Fatalf("%s: packet %d is another one", what, i)
				}
				if i < known { // by then it is known that the sender numbers
					way = netip.IPv6LinkLocalAllNodes()
				}
				if ways[way] == nil {
					order = append(order, way)
				}
				ways[way] = append(ways[way], inner)
			}
			if sprays := p.Unit.Kind == flowcell.UnitPacket; len(order)-1 < map[bool]int{true: 4, false: 1}[sprays] {
				t.Errorf("%s: by %v", what, order[1:])
			}
			slices.Reverse(order[1:]) // the first way is the slowest
			for _, way := range order {
				b.fabric.packets = ways[way]
				for len(b.fabric.packets) > 0 {
					if err := b.ReadFabric(); err != nil {
						t.Fatal(err)
					}
				}
			}
			next := uint32(0)
			for _, got := range b.programs.written {
				var pkt flowcell.Packet
				if err := pkt.Parse(got.packet); err != nil || pkt.Seq != next || pkt.Flow.Dst != flowcell.AddressFrom(b.to(six)) {
					t.Fatalf("%s: %+v, %v; %d was next", what, pkt, err, next)
				}
				next += uint32(pkt.Payload)
			}
			if s := b.Stats(); next != packets*1000 || s.Resequencer.DeliveredOutOfOrder != 0 || len(b.programs.written) > packets/2 {
				t.Errorf("%s: %d bytes in %d packets: %+v", what, next, len(b.programs.written), s.Resequencer)
			}
		}
	}
}

// Each family goes by its own topology and its own proof; what a Gateway has seen it tells of
// each alone.
func TestGateway_eachFamilyByItself(t *testing.T) {
	fabric := dualFabric(t)
	a := newDualGateway(t, fabric, 0, "drb")
	far := fabric.Node(graph.NodeID(fabric.NumHosts() - 1)).Addresses
	views := make(map[bool]*topology.Topology)
	for _, own := range []netip.Addr{a.four, a.six} {
		views[own.Is6()], _ = topology.FromGraph(fabric, own)
	}
	plain := func(six bool) *liveness.Carriage {
		w, err := liveness.New(liveness.Config{Topology: views[six], Self: 0, Address: a.to(six), MTU: 1500, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return w.Carriage() // nothing is proved
	}
	encapsulated := func(six bool) bool {
		t.Helper()
		dst := far[slices.IndexFunc(far, func(a netip.Addr) bool { return a.Is6() == six })]
		left := a.sent(t, six, packetTo(dst, 1))
		if len(left) != 1 {
			t.Fatalf("%d packets left", len(left))
		}
		return len(left[0].packet) > len(packetTo(dst, 1))
	}
	for _, c := range []struct {
		what      string
		do        func()
		four, six bool
	}{
		{"at the beginning", func() {}, true, true},
		{"IPv4 is not proved", func() { a.SetCarriage(plain(false)) }, false, true},
		{"neither is IPv6", func() { a.SetCarriage6(plain(true)) }, false, false},
		{"IPv4 is proved", func() { a.SetCarriage(nil) }, true, false},
		{"so is IPv6", func() { a.SetCarriage6(nil) }, true, true},
	} {
		if c.do(); encapsulated(false) != c.four || encapsulated(true) != c.six {
			t.Errorf("%s: want IPv4 encapsulated %t, IPv6 %t", c.what, c.four, c.six)
		}
	}
	down := views[true].Without(views[true].Ports(views[true].EdgeOf(0))[0].Link)
	if err := a.SetTopology(down); err != nil || a.Topology() == down || a.egress6.Topology() != down {
		t.Errorf("a topology of IPv6: %v, %v", err, a.Topology())
	}
	down = views[false].Without(views[false].Ports(views[false].EdgeOf(0))[0].Link)
	if err := a.SetTopology(down); err != nil || a.Topology() != down {
		t.Errorf("a topology of IPv4: %v, %v", err, a.Topology())
	}
	if err := a.SetTopology(fatTree); err == nil {
		t.Error("another fabric is accepted")
	}
	// One ingress finds out for both what is in flight.
	if f := a.ingress.flights; f != a.egress.flights || f != a.egress6.flights {
		t.Error("what IPv6 has in flight the ingress does not know")
	}
	w, w6 := newWitness(), newWitness()
	a.Observe(w, time.Second)
	a.Observe6(w6, time.Second)
	if len(w.hosts) != 1 || len(w6.hosts) != 1 || !w.hosts[0].Is4() || !w6.hosts[0].Is6() {
		t.Errorf("of IPv4 %v, of IPv6 %v", w.hosts, w6.hosts)
	}
	if s := a.Stats(); s.Egress.Encapsulated != 3 || s.Egress.Plain != 2 || s.Egress6.Encapsulated != 3 || s.Egress6.Plain != 2 || len(s.Paths) != 8 {
		t.Errorf("%+v", s)
	}
}

// The sender of an IPv6 packet hears by ICMPv6 that it is too long for an outer header, and that
// a switch has said so of the header.
func TestGateway_tellsSendersOfSmallerMTUs(t *testing.T) {
	fabric := dualFabric(t)
	a := newDualGateway(t, fabric, 0, "drb")
	dst := fabric.Node(graph.NodeID(fabric.NumHosts() - 1)).Addresses
	six := dst[slices.IndexFunc(dst, netip.Addr.Is6)]
	own := func(b []byte) []byte {
		copy(b[8:], a.six.AsSlice())
		return b
	}
	long := dataPacket6(1, 1401) // with both headers 1501 bytes
	copy(long[24:], six.AsSlice())
	a.programs.packets = [][]byte{own(long)}
	if err := a.ReadPrograms(); err != nil || len(a.fabric.written) > 0 || len(a.programs.written) != 1 {
		t.Fatalf("%v: %d packets left, %d were answered: %+v", err, len(a.fabric.written), len(a.programs.written), a.Stats().Egress6)
	}
	about := func(got []byte, mtu uint32, inner []byte) {
		t.Helper()
		ip, icmp := header.IPv6(got), header.ICMPv6(got[40:])
		if !ip.IsValid(len(got)) || icmp.Type() != header.ICMPv6PacketTooBig || icmp.MTU() != mtu || netip.AddrFrom16([16]byte(got[24:])) != a.six || !bytes.HasPrefix(inner, got[48:108]) {
			t.Errorf("%x", got)
		}
	}
	about(a.programs.written[0].packet, 1460, long)
	left := a.sent(t, true, own(packetTo(six, 1)))
	a.fabric.packets = [][]byte{dataplanetest.TooBig6(netip.MustParseAddr("2001:db8::77"), 1400, left[0].packet)}
	a.programs.written = nil
	if err := a.ReadFabric(); err != nil || len(a.programs.written) != 1 {
		t.Fatalf("%v: %+v", err, a.Stats().Ingress)
	}
	about(a.programs.written[0].packet, 1360, left[0].packet[40:])
}

// By SIDs of a graph both families leave by the packet socket.
func TestGateway_sendsToSIDs(t *testing.T) {
	spec := operator.Spec(fatTree, 1)
	for i := range spec.Nodes {
		if n := &spec.Nodes[i]; n.Tier > 1 {
			n.SIDs.Node = netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfc, 0xbb, 0xbb, 0xbb, 5: byte(i)}), 48)
		}
	}
	fabric, err := graph.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	a := newDualGateway(t, fabric, 0, "rrb", func(c *GatewayConfig) { c.Carrier = encap.CarrierSRv6 })
	for _, dst := range fabric.Node(graph.NodeID(fabric.NumHosts() - 1)).Addresses {
		ways := make(map[netip.Addr]bool)
		for i := range uint32(16) {
			packet := packetTo(dst, i)
			a.fabric.written, a.programs.packets = nil, [][]byte{packet}
			if err := a.ReadPrograms(); err != nil || len(a.fabric.written) != 1 || len(a.programs.written) > 0 {
				t.Fatalf("%v: %v, %d packets by the socket, %d by the TUN", dst, err, len(a.fabric.written), len(a.programs.written))
			}
			inner, way := bounced(t, a.fabric.written[0].packet)
			if ways[way] = true; way.As16()[0] != 0xfc || len(inner) != len(packet) || inner[0]>>4 != packet[0]>>4 {
				t.Errorf("%v: by %v", dst, way)
			}
		}
		if len(ways) != 4 {
			t.Errorf("%v: by %v", dst, ways)
		}
	}
	if _, err := NewGateway(GatewayConfig{Address: a.four, Topology: a.Topology(), Programs: a.programs, Carrier: encap.CarrierSRv6}); err == nil || !strings.Contains(err.Error(), "Fabric is missing") {
		t.Errorf("without a socket: %v", err)
	}
}

func TestNewGateway_topology6(t *testing.T) {
	fabric := dualFabric(t)
	a := newDualGateway(t, fabric, 0, "drb")
	six, four := a.egress6.Topology(), a.Topology()
	good := GatewayConfig{Address: a.four, Address6: a.six, Topology: four, Topology6: six, Programs: a.programs, Fabric: a.fabric, Clock: a.clock}
	for want, change := range map[string]func(*GatewayConfig){
		"without Fabric":                         func(c *GatewayConfig) { c.Fabric = nil },
		"Topology6: Address":                     func(c *GatewayConfig) { c.Address6 = netip.MustParseAddr("2001:db8::99") },
		"Tunnel is given together with Topology": func(c *GatewayConfig) { c.Topology, c.Fabric, c.Clock, c.Tunnel = nil, nil, nil, &Tunnel{} },
	} {
		c := good
		change(&c)
		if _, err := NewGateway(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
