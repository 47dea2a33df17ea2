package flowcell

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

const src6, dst6 = "2001:db8::2", "2001:db8:3:1::3"

var (
	// Five bytes, PSH and ACK, port 40000 to 80.
	tcpSegment  = unhex("9c400050 89abcdef 01020304 5018ffff 00000000" + "68656c6c6f")
	udpDatagram = unhex("14e90035 000a0000" + "abcd")
)

// packet6 puts a header with flow label 5.1a2b before the parts.
func packet6(next uint8, parts ...[]byte) []byte {
	payload := slices.Concat(parts...)
	b := unhex("60051a2b 00000040")
	binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
	b[6] = next
	b = append(b, netip.MustParseAddr(src6).AsSlice()...)
	b = append(b, netip.MustParseAddr(dst6).AsSlice()...)
	return append(b, payload...)
}

// extension is an extension header of 8 and 8·extra bytes.
func extension(next, extra uint8) []byte {
	b := make([]byte, 8+8*int(extra))
	b[0], b[1] = next, extra
	return b
}

func fragmentHeader(next uint8, offset uint16, more bool) []byte {
	b := unhex("00ee0000 01234567")
	b[0] = next
	binary.BigEndian.PutUint16(b[2:], offset<<3)
	if more {
		b[3] |= 1
	}
	return b
}

func atomicHeader(next uint8) []byte { return fragmentHeader(next, 0, false) }

func TestParse6_transports(t *testing.T) {
	for _, c := range []struct {
		name   string
		packet []byte
		want   Packet
	}{
		{"TCP", packet6(ProtoTCP, tcpSegment), Packet{
			Flow: tuple(ProtoTCP, "[2001:db8::2]:40000", "[2001:db8:3:1::3]:80"),
			Seq:  0x89abcdef, Payload: 5, Flags: FlagPSH | FlagACK}},
		{"UDP", packet6(ProtoUDP, udpDatagram), Packet{
			Flow: tuple(ProtoUDP, "[2001:db8::2]:5353", "[2001:db8:3:1::3]:53")}},
		{"ICMPv6", packet6(58, udpDatagram), Packet{Flow: tuple(58, "[2001:db8::2]:0", "[2001:db8:3:1::3]:0")}},
		{"ESP", packet6(50, udpDatagram), Packet{Flow: tuple(50, "[2001:db8::2]:0", "[2001:db8:3:1::3]:0")}},
		{"nothing", packet6(59), Packet{Flow: tuple(59, "[2001:db8::2]:0", "[2001:db8:3:1::3]:0")}},
	} {
		c.want.Length, c.want.ID = len(c.packet), 0x1a2b // the lower half of the flow label
		if p, err := parse(c.packet); err != nil || p != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, p, err, c.want)
		}
		if p, err := parse(append(c.packet, 0, 0, 0)); err != nil || p != c.want {
			t.Errorf("%s with padding: %+v, %v; want %+v", c.name, p, err, c.want)
		}
	}
}

func TestParse6_followsExtensionHeaders(t *testing.T) {
	for _, c := range []struct {
		name  string
		first uint8
		parts [][]byte
	}{
		{"hop-by-hop", hopByHop, [][]byte{extension(ProtoTCP, 0)}},
		{"hop-by-hop of 2048 bytes", hopByHop, [][]byte{extension(ProtoTCP, 255)}},
		{"routing", routing, [][]byte{extension(ProtoTCP, 2)}},
		{"destination options", destinationOptions, [][]byte{extension(ProtoTCP, 1)}},
		{"atomic fragment", fragment, [][]byte{atomicHeader(ProtoTCP)}},
		// The length field of a fragment header is reserved: it has none.
		{"all", hopByHop, [][]byte{extension(destinationOptions, 0), extension(routing, 0), extension(fragment, 3), atomicHeader(destinationOptions), extension(ProtoTCP, 1)}},
	} {
		want, _ := parse(packet6(ProtoTCP, tcpSegment))
		b := packet6(c.first, append(c.parts, tcpSegment)...)
		want.Length, want.Extensions = len(b), true
		if p, err := parse(b); err != nil || p != want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, p, err, want)
		}
		p, err := parse(packet6(c.first, append(c.parts, tcpSegment[:20])...))
		if want.Length, want.Payload = p.Length, 0; err != nil || p != want {
			t.Errorf("%s, no payload: %+v, %v; want %+v", c.name, p, err, want)
		}
	}
}

func TestParse6_endlessExtensionHeaders(t *testing.T) {
	for n := 1; n <= 12; n++ {
		var parts [][]byte
		for range n - 1 {
			parts = append(parts, extension(destinationOptions, 0))
		}
		b := packet6(destinationOptions, append(parts, extension(ProtoTCP, 0), tcpSegment)...)
		var want error
		if n >= maxExtensions {
			want = ErrExtensions
		}
		if p, err := parse(b); err != want {
			t.Errorf("%d extension headers: %+v, %v; want %v", n, p, err, want)
		}
	}
}

func TestParse6_fragmentsHaveNoPorts(t *testing.T) {
	for _, c := range []struct {
		offset   uint16
		more     bool
		fragment bool
	}{{0, false, false}, {0, true, true}, {1, false, true}, {1, true, true}, {8191, false, true}} {
		for _, proto := range []uint8{ProtoTCP, ProtoUDP} {
			body := map[uint8][]byte{ProtoTCP: tcpSegment, ProtoUDP: udpDatagram}[proto]
			b := packet6(hopByHop, extension(fragment, 0), fragmentHeader(proto, c.offset, c.more), body)
			p, err := parse(b)
			if err != nil || !p.Extensions || p.Fragment != c.fragment || (p.Flow.SrcPort == 0) != c.fragment || p.Flow.Proto != proto {
				t.Errorf("protocol %d, offset %d, more %v: %+v, %v", proto, c.offset, c.more, p, err)
			}
			if c.fragment && (p.IsTCP() || p.IsPureACK() || p.Payload != 0) {
				t.Errorf("offset %d, more %v: taken for a segment: %+v", c.offset, c.more, p)
			}
			b[40+8+3] |= 6 // reserved bits have no say
			if q, err := parse(b); err != nil || p != q {
				t.Errorf("with reserved bits: %+v, %v; want %+v", q, err, p)
			}
		}
	}
	// What follows the header of a fragment need not be whole.
	b := packet6(fragment, fragmentHeader(ProtoTCP, 1, false), []byte{1})
	if p, err := parse(b); err != nil || !p.Fragment {
		t.Errorf("a fragment of one byte: %+v, %v", p, err)
	}
}

func TestParse6_truncatedAnywhere(t *testing.T) {
	wholes := [][]byte{
		packet6(ProtoTCP, tcpSegment),
		packet6(ProtoUDP, udpDatagram),
		packet6(hopByHop, extension(routing, 1), extension(fragment, 0), atomicHeader(ProtoTCP), tcpSegment),
		packet6(fragment, fragmentHeader(ProtoTCP, 1, false)),
	}
	headers := []int{40 + 20, 40 + 8, 40 + 8 + 16 + 8 + 20, 40 + 8} // without payload
	for i, whole := range wholes {
		for n := range len(whole) {
			if p, err := parse(whole[:n:n]); err != ErrTruncated {
				t.Errorf("packet %d, %d bytes of %d: %+v, %v", i, n, len(whole), p, err)
			}
		}
		// The same with a length field that agrees with what is there.
		for n := 40; n < len(whole); n++ {
			b := bytes.Clone(whole[:n])
			binary.BigEndian.PutUint16(b[4:], uint16(n-40))
			if _, err := parse(b); n < headers[i] && err != ErrTruncated || n >= headers[i] && err != nil {
				t.Errorf("packet %d of %d bytes: %v", i, n, err)
			}
		}
	}
}

// BIG TCP's super-segments have no payload length, some with the hop-by-hop header of a
// jumbogram (RFC 2675), some without. No length here is long enough for them.
func TestParse6_refusesBIGTCP(t *testing.T) {
	jumbo := unhex("0600c20400020000")
	for name, b := range map[string][]byte{
		"with the option":    packet6(hopByHop, jumbo, tcpSegment, make([]byte, 100_000)),
		"without the option": packet6(ProtoTCP, tcpSegment, make([]byte, 100_000)),
	} {
		b[4], b[5] = 0, 0
		if p, err := parse(b); err != ErrTruncated {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		var p Packet
		if err := p.ParseHeaders(b[:100], len(b)); err != ErrTruncated {
			t.Errorf("%s, in parts: %+v, %v", name, p, err)
		}
	}
}

func TestParse6_badTCP(t *testing.T) {
	for offset, want := range map[byte]error{0: ErrHeaderLength, 4: ErrHeaderLength, 7: ErrTruncated, 15: ErrTruncated} {
		b := packet6(ProtoTCP, tcpSegment)
		b[40+12] = offset << 4
		if p, err := parse(b); err != want {
			t.Errorf("data offset %d: %+v, %v; want %v", offset, p, err, want)
		}
	}
}

// Taken at its word, it would be the flow of an IPv4 packet.
func TestParse6_refusesMappedAddresses(t *testing.T) {
	for _, c := range []struct {
		addr string
		want error
	}{
		{"::ffff:10.0.0.2", ErrMapped},
		{"::ffff:0.0.0.0", ErrMapped},
		{"::ffff:255.255.255.255", ErrMapped},
		{"::fffe:10.0.0.2", nil},
		{"::1:ffff:10.0.0.2", nil},
		{"1::ffff:10.0.0.2", nil},
		{"::10.0.0.2", nil},
		{"::", nil},
	} {
		for _, at := range []int{8, 24} {
			b := packet6(ProtoTCP, tcpSegment)
			copy(b[at:], netip.MustParseAddr(c.addr).AsSlice())
			if p, err := parse(b); err != c.want {
				t.Errorf("%s at %d: %+v, %v; want %v", c.addr, at, p, err, c.want)
			}
		}
	}
}

func TestAddress_isTheAddress(t *testing.T) {
	for _, s := range []string{"10.0.0.2", "0.0.0.0", "255.255.255.255", "::", "::1", "2001:db8:3:1::3", "::a00:2"} {
		a := AddressFrom(netip.MustParseAddr(s))
		if a.IP().String() != s || fmt.Sprint(a) != s {
			t.Errorf("%s comes out as %v", s, a)
		}
	}
	if a, b := AddressFrom(netip.MustParseAddr("::ffff:10.0.0.2")), AddressFrom(netip.MustParseAddr("10.0.0.2")); a != b {
		t.Errorf("mapped %v is not %v", a, b)
	}
}
