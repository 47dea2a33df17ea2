package dataplane

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/encap"
	"weft/flowcell"
	"weft/link"
	"weft/resequencer"
)

var switch6 = netip.MustParseAddr("2001:db8:5::1")

// switchError6 is an ICMPv6 error about a packet behind an outer header.
func switchError6(t testing.TB, kind, code byte, word uint32, o encap.Outer, to netip.Addr, inner []byte) []byte {
	t.Helper()
	quote, err := o.Encapsulate(append(make([]byte, encap.MaxOverhead), inner...), 1)
	if err != nil {
		t.Fatal(err)
	}
	return icmpError6(kind, code, word, to, quote)
}

// icmpError6 is an ICMPv6 error that quotes a packet, or a part of it.
func icmpError6(kind, code byte, word uint32, to netip.Addr, quote []byte) []byte {
	b := append(make([]byte, 48), quote[:min(len(quote), 1232)]...)
	b[0], b[6], b[7] = 0x60, 58, 63
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
	copy(b[8:], switch6.AsSlice())
	copy(b[24:], to.AsSlice())
	b[40], b[41] = kind, code
	binary.BigEndian.PutUint32(b[44:], word)
	ip, icmp := header.IPv6(b), header.ICMPv6(b[40:])
	icmp.SetChecksum(header.ICMPv6Checksum(header.ICMPv6ChecksumParams{Header: icmp, Src: ip.SourceAddress(), Dst: ip.DestinationAddress()}))
	return b
}

func mustOuter(o encap.Outer, err error) encap.Outer {
	if err != nil {
		panic(err)
	}
	return o
}

// What programs get of switches' complaints about outer headers, in all families.
func TestGateway_relaysTunnelErrorsOfAllFamilies(t *testing.T) {
	core, core6 := fatTree.Paths(0, 15).Addr(1), netip.MustParseAddr("2001:db8:c::1")
	four := mustOuter(encap.NewIPIPOuter(addrA, core))
	six := mustOuter(encap.NewIPIPOuter(addrA6, core6))
	sids, _ := encap.SIDs([]int{2, 3})
	labels := mustOuter(encap.NewSRv6Outer(addrA6, sids))
	in4 := dataPacket(1, 500)
	in6 := dataPacket6(1, 500)
	foreign := dataPacket6(1, 500)
	foreign[9]++
	udp := dataPacket6(1, 500)
	udp[6] = 17
	about4 := func(o encap.Outer, mtu uint16, inner []byte) []byte {
		quote, err := o.Encapsulate(append(make([]byte, encap.MaxOverhead), inner...), 1)
		if err != nil {
			t.Fatal(err)
		}
		b := plainError(addrA)[:28]
		b = append(b, quote...)
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		b[20], b[21] = 3, 4
		binary.BigEndian.PutUint16(b[26:], mtu)
		header.ICMPv4(b[20:]).SetChecksum(0)
		header.ICMPv4(b[20:]).SetChecksum(header.ICMPv4Checksum(header.ICMPv4(b[20:]), 0))
		return fixed(b)
	}
	for name, c := range map[string]struct {
		packet  []byte
		carrier encap.Carrier
		want    int // the MTU that programs are told; 0: nothing
		version byte
	}{
		"6in4":                             {about4(four, 1400, in6), 0, 1380, 6},
		"6in6":                             {switchError6(t, 2, 0, 1400, six, addrA6, in6), 0, 1360, 6},
		"4in6":                             {switchError6(t, 2, 0, 1400, six, addrA6, in4), 0, 1360, 4},
		"labels":                           {switchError6(t, 2, 0, 1400, labels, addrA6, in6), encap.CarrierSRv6, 1360, 6},
		"6in4, of another host's":          {about4(four, 1400, foreign), 0, 0, 0},
		"unreachable, of TCP":              {switchError6(t, 1, 0, 0, six, addrA6, in6), 0, 0, 0},
		"unreachable, of UDP":              {switchError6(t, 1, 0, 0, six, addrA6, udp), 0, 0, 1},
		"too big for a link there is none": {icmpError6(2, 0, 1279, addrA6, in6), 0, 0, 0},
		"too big, plain":                   {icmpError6(2, 0, 1280, addrA6, in6), 0, 1280, 6},
	} {
		r := &recorder{max: link.MaxSuperLen}
		in := newIngress(newPlainSource(nil), newToKernel(r), resequencer.Config{}, &handClock{})
		config := Config{Address: addrA, Address6: addrA6, Topology: fatTree, Carrier: c.carrier}
		in.accepts, in.relays = config.accepts(), true
		in.Receive(c.packet)
		s := in.stats
		if c.version == 0 {
			if len(r.written) != 0 || s.PathErrors != 1 || s.Relayed != 0 {
				t.Errorf("%s: %d packets, %+v", name, len(r.written), s)
			}
			continue
		}
		if len(r.written) != 1 {
			t.Errorf("%s: %d packets, %+v", name, len(r.written), s)
			continue
		}
		got := r.written[0].packet
		switch {
		case c.version == 4:
			icmp := header.ICMPv4(got[20:])
			if icmp.Type() != 3 || int(icmp.MTU()) != c.want || !bytes.HasPrefix(in4, got[28:]) || [4]byte(got[16:]) != addrA.As4() || !validIP(got) {
				t.Errorf("%s: %x", name, got)
			}
		case c.version == 1:
			if got[40] != 1 || !bytes.HasPrefix(udp, got[48:]) {
				t.Errorf("%s: %x", name, got)
			}
		default:
			if got[40] != 2 || int(binary.BigEndian.Uint32(got[44:])) != c.want || !bytes.HasPrefix(in6, got[48:]) || [16]byte(got[24:]) != addrA6.As16() {
				t.Errorf("%s: %x", name, got)
			}
		}
	}
	// The address that labels come from hears nothing but errors.
	in := newIngress(newPlainSource(nil), newToKernel(&recorder{}), resequencer.Config{}, &handClock{})
	config := Config{Address: addrA, Topology: fatTree, Carrier: encap.CarrierSRv6}
	in.accepts = config.accepts()
	packet := dataPacket6(1, 10)
	copy(packet[24:], addrA6.AsSlice())
	in.Receive(packet)
	if in.stats.NotForUs != 1 {
		t.Errorf("TCP to the labels' source: %+v", in.stats)
	}
}

// A Host believes an ICMPv6 error about TCP only if it quotes what is in flight (RFC 5927
// §4.1), and cuts the flow's segments from then on.
func TestConcerns_believesWhatIsInFlight6(t *testing.T) {
	near, _ := link.NewPair(1520, 1)
	e := testEgress(t, fatTree, "drb", inner6, func(c *Config) { c.Device, c.Address6, c.Clock = near, addrA6, &handClock{} })
	in := NewIngress(e, newToKernel(&recorder{max: link.MaxSuperLen}))
	packet := dataPacket6(1, 1400)
	transmit := func() []int {
		r := &recorder{max: link.MaxSuperLen}
		o := new(Outgoing)
		o.Begin(len(packet))
		o.Parts = append(o.Parts, packet)
		if !e.classify(o) {
			t.Fatal(e.stats)
		}
		out := newSuperOutlet(e, r)
		for i := 0; i < o.pieces && e.cut(o, i, 0) && out.add(o, 0); i++ {
		}
		out.flush()
		var sizes []int
		for _, w := range r.written {
			inner, _ := bounced(t, w.packet)
			sizes = append(sizes, len(inner))
		}
		return sizes
	}
	if s := transmit(); len(s) != 1 || s[0] != 1460 {
		t.Fatalf("before: %v", s)
	}
	forged := bytes.Clone(packet)
	binary.BigEndian.PutUint32(forged[44:], 1<<30)
	cut := packet[:47]
	in.Receive(icmpError6(2, 0, 1300, addrA6, forged))
	in.Receive(icmpError6(2, 0, 1300, addrA6, cut))
	in.Receive(icmpError6(1, 4, 0, addrA6, forged))
	if s := in.stats; s.BlindErrors != 3 || e.narrows.all != nil {
		t.Errorf("forged: %+v", s)
	}
	in.Receive(icmpError6(2, 0, 9000, addrA6, packet)) // it was not too big
	in.Receive(icmpError6(2, 0, 1279, addrA6, packet))
	if s := in.stats; s.PathErrors != 1 || e.narrows.all != nil {
		t.Errorf("of no link: %+v", s)
	}
	damaged := icmpError6(2, 0, 1400, addrA6, packet)
	damaged[47]--
	in.Receive(damaged)
	if s := in.stats; s.BadChecksum != 1 || e.narrows.all != nil {
		t.Errorf("damaged: %+v", s)
	}
	in.Receive(icmpError6(2, 0, 1300, addrA6, packet))
	if s := transmit(); len(s) != 2 || s[0] != 1300 || s[1] != 60+160 {
		t.Errorf("after: %v", s)
	}
	six := mustOuter(encap.NewIPIPOuter(addrA6, netip.MustParseAddr("2001:db8:c::1")))
	in.Receive(switchError6(t, 2, 0, 1330, six, addrA6, packet))
	if s := transmit(); in.stats.Relayed != 1 || len(s) != 2 || s[0] != 1290 {
		t.Errorf("relayed: %v, %+v", s, in.stats)
	}
}

// The numbers of IPv6 stay those of the first segment when a kernel has merged some.
func TestIngress_mergedSegmentsOfIPv6(t *testing.T) {
	in := newIngress(newPlainSource(nil), newToKernel(&recorder{max: link.MaxSuperLen}), resequencer.Config{}, &handClock{})
	in.accepts = func(*flowcell.Packet, []byte) bool { return true }
	for i := range 30 {
		b := dataPacket6(1, 4000)
		binary.BigEndian.PutUint32(b[44:], uint32(i*4000))
		flowcell.MakeNumber(uint16(i/3), 0).Stamp(b)
		in.take(&Arrived{Bytes: b, Slot: lent, MSS: 1000, verified: true}, 0)
		in.push(0)
	}
	if r := in.reseq.Stats(); r.FlowsNumbered != 1 || in.stats.Supers != 30 {
		t.Errorf("%+v, %+v", r, in.stats)
	}
}
