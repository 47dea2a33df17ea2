package dataplane

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/dataplane/dataplanetest"
	"weft/link"
	"weft/policy"
	"weft/topology"
)

var (
	dataPacket6 = dataplanetest.DataPacket6
	addrA6      = topology.Addr6(addrA)
	addrB6      = topology.Addr6(addrB)
)

func inner6(c *Config) { c.Inner6 = true }

// bounced takes the outer header off, and says where it led.
func bounced(t testing.TB, out []byte) (inner []byte, to netip.Addr) {
	t.Helper()
	to = netip.AddrFrom16([16]byte(out[24:40]))
	if out[0]>>4 == 4 {
		to = netip.AddrFrom4([4]byte(out[16:20]))
	}
	inner, err := encap.Decapsulate(bytes.Clone(out))
	if err != nil {
		t.Fatalf("%x: %v", out[:40], err)
	}
	return inner, to
}

func label(b []byte) uint32 { return binary.BigEndian.Uint32(b) & 0xfffff }

// Under every policy and by both carriers an IPv6 packet arrives as it was sent but for its
// label, and the label changes with the unit alone.
func TestWrap_sprays6(t *testing.T) {
	for _, name := range policy.Names() {
		for _, carrier := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
			e := testEgress(t, fatTree, name, inner6, func(c *Config) { c.Carrier = carrier })
			unit := e.lane.unit
			ways := make(map[netip.Addr]bool)
			var lastLabel uint32
			var lastWay netip.Addr
			for i := range 400 {
				packet := dataPacket6(1, 1000)
				binary.BigEndian.PutUint32(packet[44:], uint32(i)*1000)
				now := time.Duration(i/100) * 10 * time.Millisecond // four flowlets
				out := e.wrapOne(append(make([]byte, encap.MaxOverhead), packet...), now)
				if out == nil {
					t.Fatalf("%s, %v: packet %d is dropped: %+v", name, carrier, i, e.stats)
				}
				inner, way := bounced(t, out)
				if carrier == encap.CarrierSRv6 {
					if _, err := encap.ParseSIDs(way); err != nil || bytes.IndexByte(out[24:40], encap.SIDDecap6) < 0 || label(out) != 0 {
						t.Fatalf("%s: labels %v: %v", name, way, err)
					}
				} else if out[9] != flowcell.ProtoIPv6 || out[6] != 0x40 {
					t.Fatalf("%s: outer header %x", name, out[:20])
				}
				ways[way] = true
				was := bytes.Clone(packet)
				copy(was[2:4], inner[2:4])
				if !bytes.Equal(inner, was) {
					t.Fatalf("%s, %v: packet %d came back as %x, was %x", name, carrier, i, inner[:60], packet[:60])
				}
				n := flowcell.Number(label(inner))
				same := label(inner) == lastLabel
				switch {
				case unit.Kind == flowcell.UnitFlow && label(inner) != 0x7cafe:
					t.Fatalf("%s: the label of a flow became %05x", name, label(inner))
				case unit.Kind == flowcell.UnitFlowcell && n.Index() != 0:
					t.Fatalf("%s: index %d in a label", name, n.Index())
				case unit.Kind == flowcell.UnitPacket && (n.Index() == 0 || i > 0 && same):
					t.Fatalf("%s: packet %d has label %05x after %05x", name, i, label(inner), lastLabel)
				case unit.Cuts() && i > 0 && same && way != lastWay:
					t.Fatalf("%s: one label, two ways: %v and %v", name, lastWay, way)
				case unit.Kind == flowcell.UnitFlowlet && i > 0 && same != (i%100 != 0):
					t.Fatalf("%s: packet %d has label %05x after %05x", name, i, label(inner), lastLabel)
				}
				lastLabel, lastWay = label(inner), way
			}
			// Without reports all paths are alike to conga, and a flow stays where it is.
			if (len(ways) == 1) != (unit.Kind == flowcell.UnitFlow || name == "conga") {
				t.Errorf("%s, %v: %d ways", name, carrier, len(ways))
			}
		}
	}
}

// IPv6 leaves as it is where nobody takes it out of an outer header, or its host is not known.
func TestWrap_leaves6Plain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		dst    string
		direct bool
	}{
		"not told that switches can": {func(*Config) {}, "", false},
		"a device too small":         {func(c *Config) { inner6(c); c.Device = narrowDevice{} }, "", false},
		"another network":            {inner6, "2001:db8::7", true},
		"no host of the fabric":      {inner6, "fd77:6566:7400::a09:909", true},
		"a switch":                   {inner6, "fd77:6566:7400::a04:101", true},
		"multicast":                  {inner6, "ff02::1", true},
		"link-local":                 {inner6, "fe80::1", true},
		"a neighbour in the rack":    {inner6, topology.Addr6(fatTree.EmbeddedAddr(1)).String(), true},
	} {
		e := testEgress(t, fatTree, "presto", c.change)
		packet := dataPacket6(1, 100)
		if c.dst != "" {
			copy(packet[24:], netip.MustParseAddr(c.dst).AsSlice())
		}
		out := e.wrapOne(append(make([]byte, encap.MaxOverhead), packet...), 0)
		if !bytes.Equal(out, packet) {
			t.Errorf("%s: %x left as %x", name, packet[:60], out)
		}
		if s := e.stats; (s.Direct == 1) != c.direct || s.Direct+s.Plain != 1 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

type narrowDevice struct{ Device }

func (narrowDevice) MTU() int { return 1290 }

// What has extension headers, is a fragment or a tunnel's leaves whole, plain and in order,
// for both families.
func TestWrap_leavesPlainWhatNoSwitchUnwraps(t *testing.T) {
	extended := func(next byte, extension ...byte) []byte {
		b := dataPacket6(1, 100)
		b = slices.Concat(b[:40], extension, b[40:])
		b[6] = next
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
		return b
	}
	protocol := func(n byte) []byte {
		b := dataPacket6(1, 100)
		b[6] = n
		return b
	}
	ipip := dataPacket(1, 100)
	ipip[9] = flowcell.ProtoIPIP
	for name, packet := range map[string][]byte{
		"hop-by-hop":      extended(0, 6, 0, 1, 4, 0, 0, 0, 0),
		"destination":     extended(60, 6, 0, 1, 4, 0, 0, 0, 0),
		"first fragment":  extended(44, 6, 0, 0, 1, 1, 2, 3, 4),
		"last fragment":   extended(44, 6, 0, 8, 0, 1, 2, 3, 4),
		"atomic fragment": extended(44, 6, 0, 0, 0, 1, 2, 3, 4),
		"IPv6 in IPv6":    protocol(41),
		"IPv4 in IPv6":    protocol(4),
		"IPv4 in IPv4":    fixed(ipip),
	} {
		for _, p := range policy.Names() {
			e := testEgress(t, fatTree, p, inner6)
			e.narrows.report(flowcell.AddressFrom(addrB6), 100, 0) // nobody can cut it
			for range 5 {
				if out := e.wrapOne(append(make([]byte, encap.MaxOverhead), packet...), 0); !bytes.Equal(out, packet) {
					t.Fatalf("%s, %s: %x left as %x; %+v", name, p, packet, out, e.stats)
				}
			}
			if e.stats.Plain != 5 {
				t.Errorf("%s, %s: %+v", name, p, e.stats)
			}
		}
	}
}

// superSegment6 is superSegment over IPv6.
func superSegment6(segments int) *Outgoing {
	b := dataPacket6(1, segmentSize*segments)
	b[53] |= flowcell.FlagPSH
	for i := range b[60:] {
		b[60+i] = byte(i / segmentSize)
	}
	ip := header.IPv6(b)
	header.TCP(b[40:]).SetChecksum(header.PseudoHeaderChecksum(6, ip.SourceAddress(), ip.DestinationAddress(), uint16(len(b)-40)))
	return &Outgoing{Parts: [][]byte{b[:60], b[60 : 60+len(b)/3], b[60+len(b)/3:]}, size: len(b), MSS: segmentSize, Partial: true, CsumStart: 40, CsumAt: 16}
}

// Super-segments of IPv6 are cut here, since the uplink's program knows only IPv4, and the
// segments are those of a kernel. Plain ones stay whole.
func TestTransmit_cuts6(t *testing.T) {
	const segments = 30
	for _, policy := range []string{"presto", "drb", "letflow", "ecmp"} {
		for _, change := range []func(*Config){plain, uplink} {
			if policy == "letflow" {
				change = plain // which no program carries out
			}
			e, _ := sends(t, policy, link.MaxSuperLen, func(c *Config) { change(c); inner6(c) })
			r := e.outlet.(*superOutlet).dev.(*recorder)
			e.transmit(superSegment6(segments), 0)
			e.outlet.flush()
			if len(r.written) != segments {
				t.Fatalf("%s: %d packets; %+v", policy, len(r.written), e.stats)
			}
			labels := make(map[uint32]bool)
			for i, p := range r.written {
				inner, _ := bounced(t, p.packet)
				if p.vnet != (link.VnetHeader{Flags: link.VnetNeedsCsum, CsumStart: uint16(len(p.packet) - len(inner) + 40), CsumOffset: 16}) {
					t.Fatalf("%s: %+v", policy, p.vnet)
				}
				complete(inner, 40, 16)
				tcp := header.TCP(inner[40:])
				if len(inner) != 60+segmentSize || !validTCP(inner) || tcp.SequenceNumber() != uint32(3+i*segmentSize) || inner[60] != byte(i) || inner[len(inner)-1] != byte(i) {
					t.Fatalf("%s: segment %d: %x", policy, i, inner[:60])
				}
				if push := tcp.Flags()&header.TCPFlagPsh != 0; push != (i == segments-1) {
					t.Errorf("%s: segment %d has PSH %v", policy, i, push)
				}
				labels[label(inner)] = true
			}
			if want := map[bool]int{true: segments, false: 1}[policy == "drb"]; len(labels) != want {
				t.Errorf("%s: %d labels, want %d", policy, len(labels), want)
			}
		}
	}
	e, _ := sends(t, "drb", link.MaxSuperLen, plain) // without Inner6
	r := e.outlet.(*superOutlet).dev.(*recorder)
	o := superSegment6(segments)
	before := bytes.Join(o.Parts, nil)
	e.transmit(o, 0)
	want := link.VnetHeader{Flags: link.VnetNeedsCsum, GSOType: link.VnetGSOTCPv6, HdrLen: 60, GSOSize: segmentSize, CsumStart: 40, CsumOffset: 16}
	if len(r.written) != 1 || !bytes.Equal(r.written[0].packet, before) || r.written[0].vnet != want {
		t.Errorf("plain: %d packets, %+v", len(r.written), r.written[0].vnet)
	}
}

// BIG TCP's super-segments are refused, and counted.
func TestForward_refusesBIGTCP(t *testing.T) {
	e, _ := sends(t, "presto", link.MaxSuperLen, inner6)
	h := link.VnetHeader{Flags: link.VnetNeedsCsum, GSOType: link.VnetGSOTCPv6, HdrLen: 60, GSOSize: 1000, CsumStart: 40, CsumOffset: 16}
	for i, next := range []byte{0, 6} {
		b := dataPacket6(1, 60_000)
		b[4], b[5], b[6] = 0, 0, next
		if next == 0 {
			copy(b[40:], []byte{6, 0, 0xc2, 4, 0, 2, 0, 0})
		}
		buf := append(make([]byte, link.SuperHeadroom), b...)
		h.Put((*[link.VnetHeaderLen]byte)(buf[link.SuperHeadroom-link.VnetHeaderLen:]))
		e.forward([][]byte{buf}, []int{len(b)})
		if e.stats.Malformed != uint64(i+1) || e.stats.Packets != 0 {
			t.Errorf("next header %d: %+v", next, e.stats)
		}
	}
}

// What is too long is refused as a router would (RFC 8201), but no error is about an error.
func TestFits_refuses6(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(b []byte)
		told bool
	}{
		"TCP":               {func([]byte) {}, true},
		"UDP":               {func(b []byte) { b[6] = 17 }, true},
		"an echo":           {func(b []byte) { b[6], b[40] = 58, 128 }, true},
		"an error":          {func(b []byte) { b[6], b[40] = 58, 1 }, false},
		"a redirect":        {func(b []byte) { b[6], b[40] = 58, 137 }, false},
		"to nobody we know": {func(b []byte) { b[25]++ }, true},
	} {
		e := testEgress(t, fatTree, "drb", inner6)
		var got []byte
		e.Refuse(func(b []byte) { got = b })
		packet := dataPacket6(1, 1441)
		c.edit(packet)
		if out := e.wrapOne(append(make([]byte, encap.MaxOverhead), packet...), 0); out != nil || e.stats.TooLong != 1 || (got != nil) != c.told {
			t.Errorf("%s: %d bytes, told %x; %+v", name, len(out), got, e.stats)
		}
		if !c.told {
			continue
		}
		ip, icmp := header.IPv6(got), header.ICMPv6(got[40:])
		sum := header.ICMPv6Checksum(header.ICMPv6ChecksumParams{Header: icmp, Src: ip.SourceAddress(), Dst: ip.DestinationAddress()})
		if !ip.IsValid(len(got)) || icmp.Type() != header.ICMPv6PacketTooBig || icmp.MTU() != 1500 || icmp.Checksum() != sum ||
			!bytes.Equal(got[8:24], packet[24:40]) || !bytes.Equal(got[24:40], packet[8:24]) || !bytes.HasPrefix(packet, got[48:]) || len(got) < 48+60 || len(got) > 1280 {
			t.Errorf("%s: %x", name, got)
		}
	}
}

// A rack whose paths are too small for IPv6 gets it plain.
func TestCarriage_needsTheLeastMTUOfIPv6(t *testing.T) {
	for most, want := range map[int]uint64{1500: 1, 1299: 0} {
		e := testEgress(t, fatTree, "drb", inner6, func(c *Config) { c.Address = fatTree.Node(0).Addr })
		e.SetCarriage(carriageOf(t, true, most))
		if out := e.wrapOne(append(make([]byte, encap.MaxOverhead), dataPacket6(1, 100)...), 0); out == nil || e.stats.Encapsulated != want {
			t.Errorf("paths of %d bytes: %+v", most, e.stats)
		}
	}
}

func TestWrap6_allocatesNothing(t *testing.T) {
	for _, name := range []string{"ecmp", "drb", "presto", "letflow"} {
		e := testEgress(t, fatTree, name, inner6)
		packet := dataPacket6(1, 1000)
		buf := make([]byte, encap.MaxOverhead+len(packet))
		if n := testing.AllocsPerRun(100, func() {
			copy(buf[encap.MaxOverhead:], packet)
			if e.wrapOne(buf, 0) == nil {
				t.Fatal(e.stats)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestConfig_address6(t *testing.T) {
	for _, a := range []string{"fe80::1", "ff02::1", "::", "::1", "::ffff:10.0.0.2", "10.0.0.2", addrB6.String()} {
		near, _ := link.NewPair(1520, 1)
		c := Config{Address: addrA, Address6: netip.MustParseAddr(a), Topology: fatTree, Device: near}
		if _, err := NewEgress(c); err == nil || !bytes.HasPrefix([]byte(err.Error()), []byte("Address6")) {
			t.Errorf("%s: %v", a, err)
		}
	}
	for _, a := range []netip.Addr{addrA6, netip.MustParseAddr("2001:db8::1")} {
		testEgress(t, fatTree, "presto", func(c *Config) { c.Address6 = a })
	}
}

// Gateways carry IPv6 from end to end: flowcells by four ways that differ in delay arrive in
// order, and merged.
func TestGateway_resequences6(t *testing.T) {
	const segments = 900
	sender := testEgress(t, fatTree, "presto", inner6, func(c *Config) { c.PolicyOptions.FlowcellBytes = 10_000 })
	programs, kernel := superPair(1500)
	fabric, uplink := superPair(1500)
	defer kernel.Close()
	defer uplink.Close()
	clock := new(handClock)
	g, err := NewGateway(GatewayConfig{Address: addrB, Address6: addrB6, Topology: fatTree, Programs: programs, Fabric: fabric, Clock: clock, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ways := make(map[netip.Addr][][]byte)
	send := func(b []byte) {
		t.Helper()
		if n, err := uplink.WriteSuper([][]byte{append(make([]byte, link.SuperHeadroom), b...)}, link.SuperHeadroom); n != 1 {
			t.Fatal(err)
		}
		if err := g.ReadFabric(); err != nil {
			t.Fatal(err)
		}
	}
	var order []netip.Addr
	for i := range segments {
		packet := dataPacket6(1, 1000)
		binary.BigEndian.PutUint32(packet[44:], uint32(i)*1000)
		copy(packet[60:], fmt.Sprint(i, " "))
		dataplanetest.WithTCPChecksum6(packet)
		inner, way := bounced(t, sender.wrapOne(append(make([]byte, encap.MaxOverhead), packet...), 0))
		if i < 300 { // by then it is known that the sender numbers
			send(inner)
			continue
		}
		if ways[way] == nil {
			order = append(order, way)
		}
		ways[way] = append(ways[way], inner)
	}
	for i := len(order) - 1; i >= 0; i-- { // the first way is the slowest
		for _, b := range ways[order[i]] {
			send(b)
		}
	}
	bufs, sizes := [][]byte{make([]byte, link.SuperHeadroom+link.MaxSuperLen)}, []int{0}
	next, packets := uint32(0), 0
	for ; next < segments*1000; packets++ {
		if n, err := kernel.ReadSuper(bufs, sizes, link.SuperHeadroom); n != 1 {
			t.Fatalf("after %d bytes: %v; %+v", next, err, g.Stats())
		}
		var pkt flowcell.Packet
		if err := pkt.Parse(bufs[0][link.SuperHeadroom:][:sizes[0]]); err != nil || pkt.Seq != next {
			t.Fatalf("%+v, %v, expected is %d", pkt, err, next)
		}
		next += uint32(pkt.Payload)
	}
	s := g.Stats()
	if len(order) != 4 || packets > segments/2 || s.Resequencer.FlowsNumbered != 1 || s.Resequencer.FlowsUnnumbered != 0 || s.Resequencer.DeliveredOutOfOrder != 0 {
		t.Errorf("%d ways, %d packets, %+v", len(order), packets, s.Resequencer)
	}
}
