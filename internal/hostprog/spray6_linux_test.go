package hostprog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"testing"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// six is a host of a fabric with an operator's addresses, and the other end of its uplink.
type six struct {
	*uplinkTest
	src, dst, near6 netip.Addr // the host, one of another rack, one of its own
	dst4            netip.Addr
	order           []netip.Addr
}

func newSix(t *testing.T, policy string, edits ...func(*SprayConfig)) *six {
	t.Helper()
	spec := operator.Spec(kerneltest.Topology(t, "leaf-spine:leaves=3,spines=4,hosts=2"), 1)
	for i := range spec.Nodes {
		if spec.Nodes[i].Tier > 1 {
			spec.Nodes[i].SIDs.Node = netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfc, 0xbb, 0xbb, 0xbb, 5: byte(i)}), 48)
		}
	}
	g, err := graph.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	address := func(name string, is func(netip.Addr) bool) netip.Addr {
		id, _ := g.ByName(name)
		list := g.Node(id).Addresses
		return list[slices.IndexFunc(list, is)]
	}
	four, err := topology.FromGraph(g, address("h1-1", netip.Addr.Is4))
	if err != nil {
		t.Fatal(err)
	}
	s := &six{uplinkTest: newUplinkTest(t), src: address("h1-1", netip.Addr.Is6), dst: address("h2-1", netip.Addr.Is6), near6: address("h1-2", netip.Addr.Is6), dst4: address("h2-1", netip.Addr.Is4)}
	s.cfg = SprayConfig{Uplink: "p0", Addresses: []netip.Addr{address("h1-1", netip.Addr.Is4), s.src}, Topology: four, Policy: mustPolicy(t, policy)}
	if s.cfg.Topology6, err = topology.FromGraph(g, s.src); err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		edit(&s.cfg)
	}
	s.attach(t)
	table := mustTableBy(t, s.cfg.Topology6, 0, s.cfg.Policy, s.cfg.Carrier)
	for prefix, way := range table {
		if prefix.Contains(s.dst) {
			for step := range way.order {
				s.order = append(s.order, way.bounce(step))
			}
		}
	}
	return s
}

// tcp is a segment of a flow with a flow label.
func (s *six) tcp(port uint16, seq uint32, payload int) []byte {
	b := binary.BigEndian.AppendUint16(nil, port)
	b = binary.BigEndian.AppendUint16(b, 80)
	b = binary.BigEndian.AppendUint32(b, seq)
	b = append(b, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0)
	h := kerneltest.IPv6{Class: 0x4a, Label: 0x5cafe, Next: 6, Hops: 33, Src: s.src, Dst: s.dst}
	return h.Bytes(append(b, make([]byte, payload)...))
}

// sent sends a packet and returns the first one of IPv6 that has its hop limit, as it came or
// inside.
func (s *six) sent(t *testing.T, packet []byte) []byte {
	t.Helper()
	s.out.SendLabelled(t, packet)
	for {
		b := s.in.Receive6(t)
		if b[7] == packet[7] || len(b) >= 80 && b[6] == 41 && b[47] == packet[7] {
			return b
		}
	}
}

// carried wants a packet to leave in IPv6 to a bouncing switch, which it returns with the
// packet inside.
func (s *six) carried(t *testing.T, packet []byte) (bounce netip.Addr, inner []byte) {
	t.Helper()
	got := s.sent(t, packet)
	bounce = netip.AddrFrom16([16]byte(got[24:]))
	h, err := encap.NewIPIPOuter(s.src, bounce)
	if err != nil {
		t.Fatal(err)
	}
	inner = got[40:]
	want, err := h.Encapsulate(append(make([]byte, encap.MaxOverhead), inner...), 0)
	if err != nil || !bytes.Equal(got, want) || !slices.Contains(s.order, bounce) {
		t.Fatalf("left:\n%swant by %v:\n%s%v", hex.Dump(got[:80]), s.order, hex.Dump(want[:min(80, len(want))]), err)
	}
	return bounce, inner
}

// label is a packet's flow label.
func label(packet []byte) uint32 { return binary.BigEndian.Uint32(packet) & 0xfffff }

// Each packet of a flow takes the next path of the order, a segment sent again as well. The
// packet inside is as it was.
func TestSpray6_packets(t *testing.T) {
	s := newSix(t, "drb")
	n := len(s.order)
	for port := range uint16(4) {
		var took []netip.Addr
		for i := range 3 * n {
			packet := s.tcp(port, uint32(i/2), 100) // each is sent twice
			bounce, inner := s.carried(t, packet)
			if !bytes.Equal(inner, packet) {
				t.Fatalf("inside:\n%s", hex.Dump(inner[:60]))
			}
			took = append(took, bounce)
		}
		first := slices.Index(s.order, took[0])
		for i, bounce := range took {
			if want := s.order[(first+i)%n]; bounce != want {
				t.Errorf("port %d, packet %d went by %v, want %v", port, i, bounce, want)
			}
		}
	}
	stats, err := s.spray.Stats()
	if err != nil || stats.Encapsulated != uint64(12*n) || stats.Flows != 4 {
		t.Errorf("counted %+v, %v", stats, err)
	}
	for _, b := range stats.Bounces {
		if b.Addr.Is6() && (b.Packets != 12 || b.Bytes != 12*(40+40+20+100)) {
			t.Errorf("%v: %+v", b.Addr, b.Traffic)
		}
	}
}

// Flowcells have one path and one label each, the number of weft/flowcell.
func TestSpray6_flowcells(t *testing.T) {
	s := newSix(t, "presto", func(c *SprayConfig) { c.Cut = c.Addresses })
	const payload = 1400
	perCell := s.cfg.Policy.Unit.Bytes / payload
	var cutter flowcell.Cutter
	var shift uint16
	var last netip.Addr
	for i := range 5 * perCell {
		packet := s.tcp(9, uint32(i*payload), payload)
		bounce, inner := s.carried(t, packet)
		number, begins := cutter.Next(s.cfg.Policy.Unit, uint32(i*payload), payload, 1, 0)
		if got := flowcell.Number(label(inner)); i == 0 {
			shift = got.Cell() - number.Cell()
		} else if want := flowcell.MakeNumber((number.Cell()+shift)%flowcell.Cells, 0); got != want {
			t.Fatalf("segment %d has number %x, want %x", i, got, want)
		}
		if label(inner)>>16 != 0x5 || !bytes.Equal(inner[4:], packet[4:]) || inner[0] != packet[0] || inner[1]>>4 != packet[1]>>4 {
			t.Fatalf("inside:\n%s", hex.Dump(inner[:60]))
		}
		if i > 0 && begins == (bounce == last) {
			t.Errorf("segment %d goes by %v after %v; a flowcell begins: %v", i, bounce, last, begins)
		}
		last = bounce
	}
}

// Packets of both families go to the SIDs of the bouncing switches, where the fabric has
// those.
func TestSpray6_sids(t *testing.T) {
	s := newSix(t, "rrb", func(c *SprayConfig) { c.Carrier = encap.CarrierSRv6 })
	t6 := s.cfg.Topology6
	set := t6.Paths(0, mustRack(t, t6, s.dst))
	took := [2]map[netip.Addr]bool{{}, {}}
	for i := range 8 {
		v4 := kerneltest.IPv4{TOS: 0x4a, ID: uint16(i), Frag: 0x4000, TTL: 33, Protocol: 6, Src: s.cfg.Addresses[0], Dst: s.dst4}.Bytes(s.tcp(7, 1, 100)[40:])
		s.out.Send(t, v4)
		for f, packet := range [][]byte{v4, s.tcp(7, uint32(i), 100)} {
			var got []byte
			if f == 1 {
				s.out.SendLabelled(t, packet)
			}
			for len(got) < 60 || !bytes.Equal(got[40:], packet) {
				got = s.in.Receive6(t)
			}
			to := netip.AddrFrom16([16]byte(got[24:]))
			took[f][to] = true
			var outer encap.Outer
			for _, n := range set.Live {
				sid4, _ := set.SID(n, false)
				sid6, _ := set.SID(n, true)
				if to == [2]netip.Addr{sid4, sid6}[f] {
					outer, _ = encap.NewSIDOuter(s.src, sid4, sid6)
				}
			}
			want, err := outer.Encapsulate(append(make([]byte, encap.MaxOverhead), packet...), 0)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("left:\n%swant:\n%s%v", hex.Dump(got[:60]), hex.Dump(want[:min(60, len(want))]), err)
			}
		}
	}
	if len(took[0]) != 4 || len(took[1]) != 4 {
		t.Errorf("IPv4 took %v, IPv6 %v", took[0], took[1])
	}
	stats, err := s.spray.Stats()
	if err != nil || stats.Encapsulated != 16 || len(stats.Bounces) != 8 {
		t.Errorf("counted %+v, %v", stats, err)
	}
}

// What is not TCP keeps to one path for each pair of hosts, and its label.
func TestSpray6_others(t *testing.T) {
	for _, policy := range []string{"drb", "presto", "rand", "luopan", "ecmp"} {
		t.Run(policy, func(t *testing.T) {
			s := newSix(t, policy)
			var first netip.Addr
			for _, next := range []byte{17, 58, 44, 0, 60} { // UDP, ICMPv6, a fragment, extension headers
				for range 3 {
					packet := s.tcp(7, 1, 100)
					packet[6] = next
					bounce, inner := s.carried(t, packet)
					if first == (netip.Addr{}) {
						first = bounce
					}
					if bounce != first || !bytes.Equal(inner, packet) {
						t.Errorf("protocol %d by %v, want %v:\n%s", next, bounce, first, hex.Dump(inner[:60]))
					}
				}
			}
		})
	}
}

// Paths that are drawn are all drawn, and a flow by its hash takes one.
func TestSpray6_pathsOfPolicies(t *testing.T) {
	for policy, want := range map[string]int{"rand": 4, "luopan": 4, "rb": 4, "rrb": 4, "ecmp": 1} {
		t.Run(policy, func(t *testing.T) {
			s := newSix(t, policy, func(c *SprayConfig) {
				if c.Policy.Unit.Kind == flowcell.UnitFlowcell {
					c.Cut = c.Addresses
				}
			})
			took := make(map[netip.Addr]bool)
			const payload = 1400
			for i := range 3000 {
				bounce, _ := s.carried(t, s.tcp(9, uint32(i*payload), payload))
				if took[bounce] = true; len(took) == want && (want > 1 || i > 50) {
					break
				}
			}
			if len(took) != want {
				t.Errorf("%d paths, want %d", len(took), want)
			}
		})
	}
}

// These leave as they are.
func TestSpray6_leavesAlone(t *testing.T) {
	s := newSix(t, "drb")
	unchanged := func(what string, packet []byte) {
		t.Helper()
		if got := s.sent(t, packet); !bytes.Equal(got, packet) {
			t.Errorf("%s: left\n%s", what, hex.Dump(got[:min(80, len(got))]))
		}
	}
	with := func(edit func(b []byte)) []byte {
		b := s.tcp(7, 1, 100)
		edit(b)
		return b
	}
	unchanged("own rack", with(func(b []byte) { copy(b[24:], s.near6.AsSlice()) }))
	unchanged("not of the fabric", with(func(b []byte) { b[24] = 0x3f }))
	unchanged("another source", with(func(b []byte) { b[23]++ }))
	unchanged("IPv6 in IPv6", with(func(b []byte) { b[6] = 41 }))
	unchanged("IPv4 in IPv6", with(func(b []byte) { b[6] = 4 }))
	unchanged("longer than it is", with(func(b []byte) { b[5]++ }))
	unchanged("too long", s.tcp(7, 1, 1500-40-20-39))
	if err := s.spray.SetPlain(func(rack netip.Prefix) bool { return rack.Addr().Is6() }); err != nil {
		t.Fatal(err)
	}
	unchanged("plain", s.tcp(7, 1, 100))
	if err := s.spray.SetPlain(func(rack netip.Prefix) bool { return rack.Addr().Is4() }); err != nil {
		t.Fatal(err)
	}
	s.carried(t, s.tcp(7, 1, 1500-40-20-40))
}

// A path that is down for IPv6 alone is out of use for IPv6 alone.
func TestSpray6_setTopology(t *testing.T) {
	s := newSix(t, "drb")
	t6 := s.cfg.Topology6
	for i, n := range t6.Paths(0, mustRack(t, t6, s.dst)).Live {
		down := t6.Paths(0, mustRack(t, t6, s.dst)).Path(n).Links[1]
		if err := s.spray.SetTopology(t6.Without(down)); err != nil {
			t.Fatal(err)
		}
		gone := t6.Paths(0, mustRack(t, t6, s.dst)).Addr(n)
		for j := range 8 {
			if bounce, _ := s.carried(t, s.tcp(uint16(i), uint32(j), 100)); bounce == gone {
				t.Errorf("by %v, which is down", bounce)
			}
		}
	}
	if err := s.spray.SetTopology(s.cfg.Topology); err != nil {
		t.Errorf("IPv4's: %v", err)
	}
	if err := s.spray.SetTopology(kerneltest.Topology(t, "fat-tree:k=4")); err == nil {
		t.Error("another fabric is taken")
	}
}

func mustRack(t *testing.T, top *topology.Topology, host netip.Addr) topology.NodeID {
	t.Helper()
	edge, ok := top.RackAt(host)
	if !ok {
		t.Fatalf("no rack has %v", host)
	}
	return edge
}
