package flowcell

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// A TCP segment of five bytes, PSH and ACK, 10.0.0.2:40000 to 10.3.1.3:80.
func tcpPacket() []byte {
	return unhex("4500002d 1a2b4000 4006 0000 0a000002 0a030103" +
		"9c400050 89abcdef 01020304 5018ffff 00000000" + "68656c6c6f")
}

func udpPacket() []byte {
	return unhex("4500001e 00010000 4011 0000 0a000002 0a030103" + "14e90035 000a0000" + "abcd")
}

func tuple(proto uint8, src, dst string) FiveTuple {
	a, b := netip.MustParseAddrPort(src), netip.MustParseAddrPort(dst)
	return FiveTuple{AddressFrom(a.Addr()), AddressFrom(b.Addr()), a.Port(), b.Port(), proto}
}

// parse is Parse into a Packet that another has been parsed into before, for
// nothing of it may stay.
func parse(b []byte) (Packet, error) {
	p := Packet{Flow: tuple(99, "[2001:db8::99]:99", "[2001:db8::99]:99"),
		Length: 99, Seq: 99, Payload: 99, ID: 99, Flags: 99, Fragment: true}
	err := p.Parse(b)
	return p, err
}

func TestParse_tcp(t *testing.T) {
	want := Packet{
		Flow:   tuple(ProtoTCP, "10.0.0.2:40000", "10.3.1.3:80"),
		Length: 45, Seq: 0x89abcdef, Payload: 5, ID: 0x1a2b, Flags: FlagPSH | FlagACK,
	}
	if p, err := parse(tcpPacket()); err != nil || p != want {
		t.Errorf("%+v, %v; want %+v", p, err, want)
	}
	// Bytes behind the packet are an Ethernet frame's padding, not payload.
	if p, err := parse(append(tcpPacket(), 0, 0, 0)); err != nil || p != want {
		t.Errorf("with padding: %+v, %v; want %+v", p, err, want)
	}
}

func TestParse_udp(t *testing.T) {
	want := Packet{Flow: tuple(ProtoUDP, "10.0.0.2:5353", "10.3.1.3:53"), Length: 30, ID: 1}
	if p, err := parse(udpPacket()); err != nil || p != want || p.IsTCP() {
		t.Errorf("%+v, %v; want %+v", p, err, want)
	}
}

func TestParse_otherProtocolsHaveNoPorts(t *testing.T) {
	for _, proto := range []uint8{ProtoICMP, ProtoIPIP, 0, 47, 50, 132, 255} {
		b := udpPacket()
		b[9] = proto
		want := Packet{Flow: tuple(proto, "10.0.0.2:0", "10.3.1.3:0"), Length: 30, ID: 1}
		if p, err := parse(b); err != nil || p != want {
			t.Errorf("protocol %d: %+v, %v; want %+v", proto, p, err, want)
		}
	}
}

func TestParse_options(t *testing.T) {
	// Eight bytes of IP options, twelve of TCP's, three of payload.
	b := unhex("4700002f 00014000 4006 0000 0a000002 0a030103 0101010101010100" +
		"9c400050 00000007 00000000 8002ffff 00000000")
	b = append(b, unhex("020405b4 01030307 04020000 616263")...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	p, err := parse(b)
	if err != nil || p.Seq != 7 || p.Payload != 3 || p.Flags != FlagSYN || p.Flow.DstPort != 80 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestParse_fragmentsHaveNoPorts(t *testing.T) {
	for field, fragment := range map[uint16]bool{
		0x2000: true, 0x0001: true, 0x2001: true, 0x1fff: true, 0x00b9: true,
		0x0000: false, 0x4000: false, 0x8000: false, 0xc000: false,
	} {
		for _, b := range [][]byte{tcpPacket(), udpPacket()} {
			binary.BigEndian.PutUint16(b[6:], field)
			p, err := parse(b)
			if err != nil || p.Fragment != fragment || (p.Flow.SrcPort == 0) != fragment {
				t.Errorf("flags and offset %04x: %+v, %v", field, p, err)
			}
			if fragment && (p.IsTCP() || p.IsPureACK() || p.Payload != 0) {
				t.Errorf("flags and offset %04x: taken for a segment: %+v", field, p)
			}
		}
	}
}

func TestParse_truncatedAnywhere(t *testing.T) {
	for _, whole := range [][]byte{tcpPacket(), udpPacket()} {
		for n := range len(whole) {
			if p, err := parse(whole[:n:n]); err != ErrTruncated {
				t.Errorf("%d bytes of %d: %+v, %v", n, len(whole), p, err)
			}
		}
	}
	if p, err := parse([]byte{0x70}); err != ErrVersion {
		t.Errorf("one byte of version 7: %+v, %v", p, err)
	}
	// The same with a length field that agrees with what is there.
	transport := map[uint8]int{ProtoTCP: 20, ProtoUDP: 8}
	for _, whole := range [][]byte{tcpPacket(), udpPacket()} {
		for n := 20; n < len(whole); n++ {
			b := bytes.Clone(whole[:n])
			binary.BigEndian.PutUint16(b[2:], uint16(n))
			_, err := parse(b)
			if short := n < 20+transport[b[9]]; short && err != ErrTruncated || !short && err != nil {
				t.Errorf("protocol %d of %d bytes: %v", b[9], n, err)
			}
		}
	}
}

func TestParse_badHeaders(t *testing.T) {
	set := func(i int, v byte) func([]byte) {
		return func(b []byte) { b[i] = v }
	}
	for _, c := range []struct {
		name string
		edit func([]byte)
		want error
	}{
		{"version 0", set(0, 0x05), ErrVersion},
		{"version 5", set(0, 0x55), ErrVersion},
		{"version 6", set(0, 0x65), ErrTruncated}, // its length is elsewhere
		{"version 15", set(0, 0xf5), ErrVersion},
		{"IHL 0", set(0, 0x40), ErrHeaderLength},
		{"IHL 4", set(0, 0x44), ErrHeaderLength},
		{"IHL beyond the packet", set(0, 0x4f), ErrTruncated},
		{"length 0", set(3, 0), ErrTruncated},
		{"length below IHL", set(3, 19), ErrTruncated},
		{"length beyond the bytes", set(3, 46), ErrTruncated},
		{"data offset 0", set(32, 0x00), ErrHeaderLength},
		{"data offset 4", set(32, 0x40), ErrHeaderLength},
		{"data offset beyond the packet", set(32, 0x70), ErrTruncated},
	} {
		b := tcpPacket()
		c.edit(b)
		if p, err := parse(b); err != c.want {
			t.Errorf("%s: %+v, %v; want %v", c.name, p, err, c.want)
		}
	}
}

func TestIsPureACK_carriesNothing(t *testing.T) {
	for _, c := range []struct {
		payload int32
		flags   uint8
		want    bool
	}{
		{0, FlagACK, true},
		{0, FlagACK | FlagPSH, true},
		{1, FlagACK, false},
		{0, FlagACK | FlagSYN, false},
		{0, FlagACK | FlagFIN, false},
		{0, FlagACK | FlagRST, false},
	} {
		p := Packet{Flow: FiveTuple{Proto: ProtoTCP}, Payload: c.payload, Flags: c.flags}
		if p.IsPureACK() != c.want {
			t.Errorf("%d bytes, flags %02x: %v", c.payload, c.flags, !c.want)
		}
	}
	if p := (Packet{Flow: FiveTuple{Proto: ProtoUDP}}); p.IsPureACK() {
		t.Error("a datagram is a pure ACK")
	}
}

func TestParse_allocatesNothing(t *testing.T) {
	good, bad := tcpPacket(), tcpPacket()[:30]
	if n := testing.AllocsPerRun(100, func() {
		var p Packet
		err := p.Parse(good)
		hash := p.Flow.Hash(1)
		if err2 := p.Parse(bad); err != nil || err2 == nil || hash == 0 {
			t.Fatal(err, err2)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(tcpPacket())
	f.Add(udpPacket())
	f.Add(append(tcpPacket(), 0, 0))
	f.Add(tcpPacket()[:33])
	f.Add(packet6(ProtoTCP, tcpSegment))
	f.Add(append(packet6(fragment, atomicHeader(ProtoUDP), udpDatagram), 0))
	f.Add(packet6(hopByHop, extension(routing, 2), extension(destinationOptions, 0), extension(fragment, 1), fragmentHeader(ProtoTCP, 8, true), tcpSegment))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		p, err := parse(b)
		if !bytes.Equal(b, before) {
			t.Fatalf("%x became %x", before, b)
		}
		want, ok := obvious(b)
		if (err == nil) != ok || ok && p != want {
			t.Fatalf("%x: %+v, %v; want %+v, %v", b, p, err, want, ok)
		}
		if err != nil {
			return
		}
		if !p.IsTCP() && (p.Payload != 0 || p.Flags != 0 || p.Seq != 0 || p.IsPureACK()) {
			t.Fatalf("%x: %+v", b, p)
		}
		// What is behind the packet's end has no say.
		if short, err := parse(b[:p.Length]); err != nil || short != p {
			t.Fatalf("%x without padding: %+v, %v; want %+v", b, short, err, p)
		}
	})
}

// obvious is Parse without haste: it collects the headers, then looks.
func obvious(b []byte) (p Packet, ok bool) {
	number := func(b []byte) (n uint64) {
		for _, x := range b {
			n = n<<8 | uint64(x)
		}
		return n
	}
	at := func(i, n int) []byte { // n bytes at i, or zeros if they are not there
		if p.Length > 0 && i+n > p.Length || i+n > len(b) {
			ok = false
			return make([]byte, n)
		}
		return b[i : i+n]
	}
	ok = true
	var transport int
	switch number(at(0, 1)) >> 4 {
	case 4:
		if p.Length = int(number(at(2, 2))); p.Length > len(b) || p.Length < 20 {
			return p, false
		}
		src, _ := netip.AddrFromSlice(at(12, 4))
		dst, _ := netip.AddrFromSlice(at(16, 4))
		p.Flow.Src, p.Flow.Dst, p.Flow.Proto = AddressFrom(src), AddressFrom(dst), at(9, 1)[0]
		p.ID = uint16(number(at(4, 2)))
		p.Fragment = number(at(6, 2))%(1<<14) != 0
		if transport = int(number(at(0, 1))%16) * 4; transport < 20 || transport > p.Length {
			return p, false
		}
	case 6:
		if p.Length = 40 + int(number(at(4, 2))); p.Length > len(b) {
			return p, false
		}
		src, _ := netip.AddrFromSlice(at(8, 16))
		dst, _ := netip.AddrFromSlice(at(24, 16))
		if src.Is4In6() || dst.Is4In6() {
			return p, false
		}
		p.Flow.Src, p.Flow.Dst, p.Flow.Proto = AddressFrom(src), AddressFrom(dst), at(6, 1)[0]
		p.ID = uint16(number(at(2, 2)))
		transport = 40
		for n := 0; ok && !p.Fragment; n++ {
			length := 0
			switch p.Flow.Proto {
			case 0, 43, 60:
				length = 8 * (1 + int(number(at(transport+1, 1))))
			case 44:
				length = 8
				p.Fragment = number(at(transport+2, 2))&0xfff9 != 0
			}
			if length == 0 {
				break
			}
			if n == maxExtensions-1 && !p.Fragment { // no room for what must follow
				return p, false
			}
			p.Extensions = true
			p.Flow.Proto = at(transport, length)[0]
			transport += length
		}
	default:
		return p, false
	}
	if p.Fragment || !ok {
		return p, ok
	}
	switch p.Flow.Proto {
	case 6:
		p.Flow.SrcPort, p.Flow.DstPort = uint16(number(at(transport, 2))), uint16(number(at(transport+2, 2)))
		p.Seq, p.Flags = uint32(number(at(transport+4, 4))), at(transport+13, 1)[0]
		offset := int(at(transport+12, 1)[0]>>4) * 4
		at(transport, max(offset, 20))
		ok = ok && offset >= 20
		p.Payload = int32(p.Length - transport - offset)
	case 17:
		p.Flow.SrcPort, p.Flow.DstPort = uint16(number(at(transport, 2))), uint16(number(at(transport+2, 2)))
		at(transport, 8)
	}
	return p, ok
}

func BenchmarkParse(b *testing.B) {
	for name, packet := range map[string][]byte{"IPv4": tcpPacket(), "IPv6": packet6(ProtoTCP, tcpSegment)} {
		b.Run(name, func(b *testing.B) {
			var p Packet
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Parse(packet); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
