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
	return unhex("4500002d 00014000 4006 0000 0a000002 0a030103" +
		"9c400050 89abcdef 01020304 5018ffff 00000000" + "68656c6c6f")
}

func udpPacket() []byte {
	return unhex("4500001e 00010000 4011 0000 0a000002 0a030103" + "14e90035 000a0000" + "abcd")
}

func tuple(proto uint8, src, dst string) FiveTuple {
	a, b := netip.MustParseAddrPort(src), netip.MustParseAddrPort(dst)
	return FiveTuple{a.Addr().As16(), b.Addr().As16(), a.Port(), b.Port(), proto}
}

func TestParse_tcp(t *testing.T) {
	want := Packet{
		Flow:   tuple(ProtoTCP, "10.0.0.2:40000", "10.3.1.3:80"),
		Length: 45, Seq: 0x89abcdef, Payload: 5, Flags: FlagPSH | FlagACK,
	}
	if p, err := Parse(tcpPacket()); err != nil || p != want {
		t.Errorf("%+v, %v; want %+v", p, err, want)
	}
	// Bytes behind the packet are an Ethernet frame's padding, not payload.
	if p, err := Parse(append(tcpPacket(), 0, 0, 0)); err != nil || p != want {
		t.Errorf("with padding: %+v, %v; want %+v", p, err, want)
	}
}

func TestParse_udp(t *testing.T) {
	want := Packet{Flow: tuple(ProtoUDP, "10.0.0.2:5353", "10.3.1.3:53"), Length: 30}
	if p, err := Parse(udpPacket()); err != nil || p != want || p.IsTCP() {
		t.Errorf("%+v, %v; want %+v", p, err, want)
	}
}

func TestParse_otherProtocolsHaveNoPorts(t *testing.T) {
	for _, proto := range []uint8{ProtoICMP, ProtoIPIP, 0, 47, 50, 132, 255} {
		b := udpPacket()
		b[9] = proto
		want := Packet{Flow: tuple(proto, "10.0.0.2:0", "10.3.1.3:0"), Length: 30}
		if p, err := Parse(b); err != nil || p != want {
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
	p, err := Parse(b)
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
			p, err := Parse(b)
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
			if p, err := Parse(whole[:n:n]); err != ErrTruncated {
				t.Errorf("%d bytes of %d: %+v, %v", n, len(whole), p, err)
			}
		}
	}
	// The same with a length field that agrees with what is there.
	transport := map[uint8]int{ProtoTCP: 20, ProtoUDP: 8}
	for _, whole := range [][]byte{tcpPacket(), udpPacket()} {
		for n := 20; n < len(whole); n++ {
			b := bytes.Clone(whole[:n])
			binary.BigEndian.PutUint16(b[2:], uint16(n))
			_, err := Parse(b)
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
		{"version 6", set(0, 0x65), ErrVersion},
		{"version 0", set(0, 0x05), ErrVersion},
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
		if p, err := Parse(b); err != c.want {
			t.Errorf("%s: %+v, %v; want %v", c.name, p, err, c.want)
		}
	}
}

func TestIsPureACK_carriesNothing(t *testing.T) {
	for _, c := range []struct {
		payload int
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
		p, err := Parse(good)
		if _, err2 := Parse(bad); err != nil || err2 == nil || p.Flow.Hash(1) == 0 {
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
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		p, err := Parse(b)
		if !bytes.Equal(b, before) {
			t.Fatalf("%x became %x", before, b)
		}
		if err != nil {
			return
		}
		ihl := int(b[0]&0xf) * 4
		if p.Length < ihl || p.Length > len(b) || !bytes.Equal(p.Flow.Src[12:], b[12:16]) || !bytes.Equal(p.Flow.Dst[12:], b[16:20]) {
			t.Fatalf("%x: %+v", b, p)
		}
		if p.IsTCP() {
			if offset := int(b[ihl+12]>>4) * 4; p.Payload < 0 || ihl+offset+p.Payload != p.Length || p.Seq != binary.BigEndian.Uint32(b[ihl+4:]) {
				t.Fatalf("%x: %+v", b, p)
			}
		} else if p.Payload != 0 || p.Flags != 0 || p.Seq != 0 || p.IsPureACK() {
			t.Fatalf("%x: %+v", b, p)
		}
		// What is behind the packet's end has no say.
		if short, err := Parse(b[:p.Length]); err != nil || short != p {
			t.Fatalf("%x without padding: %+v, %v; want %+v", b, short, err, p)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	packet := tcpPacket()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(packet); err != nil {
			b.Fatal(err)
		}
	}
}
