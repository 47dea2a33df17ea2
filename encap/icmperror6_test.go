package encap

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
)

// errorPacket6 is an ICMPv6 error from one address to another, with hop limit 64.
func errorPacket6(from, to netip.Addr, kind, code byte, word uint32, quote []byte) []byte {
	b := append(make([]byte, 48), quote...)
	b[0], b[6], b[7] = 0x60, 58, 64
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
	copy(b[8:], from.AsSlice())
	copy(b[24:], to.AsSlice())
	b[40], b[41] = kind, code
	binary.BigEndian.PutUint32(b[44:], word)
	fixICMP6(b)
	return b
}

// slowICMP6 is the checksum of the ICMPv6 packet in b, over a pseudo header that is written
// out (RFC 8200 §8.1).
func slowICMP6(b []byte) uint16 {
	pseudo := append([]byte(nil), b[8:40]...)
	pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(len(b)-40))
	pseudo = append(pseudo, 0, 0, 0, 58)
	return slowSum(append(pseudo, b[40:]...))
}

func fixICMP6(b []byte) {
	b[42], b[43] = 0, 0
	binary.BigEndian.PutUint16(b[42:], slowICMP6(b))
}

// errorPacket4 is an ICMP error with TTL 64.
func errorPacket4(from, to string, kind, code byte, mtu uint16, quote []byte) []byte {
	b := errorPacket(kind, code, mtu, quote)
	b[8] = 64
	copy(b[12:], netip.MustParseAddr(from).AsSlice())
	copy(b[16:], netip.MustParseAddr(to).AsSlice())
	fix(b)
	return b
}

var (
	switch6 = netip.MustParseAddr("2001:db8:5::1")
	peer6   = netip.MustParseAddr("2001:db8:3::3")
)

// What a switch says about an outer header, and what the inner packet's sender must get, in
// all combinations of families and for all kinds of errors.
func TestInnerError_ofAllFamilies(t *testing.T) {
	in4, in6 := unhex(goldenInner), unhex(goldenInner6)
	four := func(outer, inner string) func(kind, code byte, mtu uint32) []byte {
		return func(kind, code byte, mtu uint32) []byte {
			return errorPacket(kind, code, uint16(mtu), unhex(outer+inner))
		}
	}
	six := func(outer, inner string) func(kind, code byte, mtu uint32) []byte {
		return func(kind, code byte, mtu uint32) []byte {
			return errorPacket6(switch6, host6, kind, code, mtu, unhex(outer+inner))
		}
	}
	to4 := func(kind, code byte, mtu uint32) []byte { // the switch has no IPv4 address
		return errorPacket4("10.3.1.3", "10.0.0.2", kind, code, uint16(mtu), in4)
	}
	to6 := func(from netip.Addr) func(kind, code byte, mtu uint32) []byte {
		return func(kind, code byte, mtu uint32) []byte { return errorPacket6(from, host6, kind, code, mtu, in6) }
	}
	type say struct {
		kind, code byte
		mtu        uint32
	}
	from4 := []struct{ in, out say }{ // in ICMP, out ICMPv6
		{say{3, 4, 1500}, say{2, 0, 1480}},
		{say{3, 4, 1290}, say{2, 0, 1280}},
		{say{3, 4, 0}, say{2, 0, 1280}},
		{say{3, 0, 0}, say{1, 0, 0}},
		{say{3, 1, 0}, say{1, 3, 0}},
		{say{3, 2, 0}, say{1, 3, 0}},
		{say{3, 13, 0}, say{1, 1, 0}},
		{say{3, 9, 0}, say{1, 1, 0}},
		{say{3, 200, 0}, say{1, 0, 0}},
		{say{11, 0, 0}, say{1, 3, 0}},
		{say{3, 3, 0}, say{}},
		{say{3, 5, 0}, say{}},
		{say{11, 1, 0}, say{}},
		{say{12, 0, 0}, say{}},
	}
	from6 := []struct{ in, out4, out6 say }{
		{say{2, 0, 9000}, say{3, 4, 8960}, say{2, 0, 8960}},
		{say{2, 0, 1280}, say{3, 4, 1240}, say{2, 0, 1280}},
		{say{2, 0, 0}, say{3, 4, 552}, say{2, 0, 1280}},
		{say{2, 0, 0xffffffff}, say{3, 4, 0xffff - 40}, say{2, 0, 0xffff - 40}},
		{say{1, 0, 0}, say{3, 0, 0}, say{1, 0, 0}},
		{say{1, 1, 0}, say{3, 13, 0}, say{1, 1, 0}},
		{say{1, 2, 0}, say{3, 1, 0}, say{1, 3, 0}},
		{say{1, 3, 0}, say{3, 1, 0}, say{1, 3, 0}},
		{say{1, 5, 0}, say{3, 13, 0}, say{1, 1, 0}},
		{say{3, 0, 0}, say{3, 1, 0}, say{1, 3, 0}},
		{say{4, 1, 6}, say{3, 1, 0}, say{1, 3, 0}},
		{say{1, 4, 0}, say{}, say{}},
		{say{1, 77, 0}, say{}, say{}},
		{say{3, 1, 0}, say{}, say{}},
		{say{4, 0, 4}, say{}, say{}},
	}
	check := func(name string, b, want, inner []byte) {
		t.Helper()
		before := bytes.Clone(b)
		got, about, err := InnerError(append(b, "padding"...)[:len(b)])
		if want == nil {
			if err != ErrOurOwn || !bytes.Equal(b, before) {
				t.Errorf("%s: %v, want %v", name, err, ErrOurOwn)
			}
		} else if err != nil || !bytes.Equal(got, want) || !bytes.Equal(about, inner) {
			t.Errorf("%s: %v\ngot  %x\nwant %x", name, err, got, want)
		}
	}
	want := func(make func(kind, code byte, mtu uint32) []byte, s say) []byte {
		if s == (say{}) {
			return nil
		}
		return make(s.kind, s.code, s.mtu)
	}
	for _, c := range from4 {
		check("6in4", four(golden6in4, goldenInner6)(c.in.kind, c.in.code, c.in.mtu), want(to6(peer6), c.out), in6)
	}
	for _, c := range from6 {
		check("6in6", six(golden6in6, goldenInner6)(c.in.kind, c.in.code, c.in.mtu), want(to6(switch6), c.out6), in6)
		check("4in6", six(golden4in6, goldenInner)(c.in.kind, c.in.code, c.in.mtu), want(to4, c.out4), in4)
	}
}

// An error about labels goes to the address that the labels came from, and quotes them as
// they were where the packet was stopped.
func TestInnerError_aboutLabels(t *testing.T) {
	quote := unhex(goldenSRv6 + goldenInner)
	copy(quote[24:], unhex("5f000201fe000000"))
	b := errorPacket6(switch6, src6, 2, 0, 1400, quote)
	want := errorPacket4("10.3.1.3", "10.0.0.2", 3, 4, 1360, unhex(goldenInner))
	if got, _, err := InnerError(b); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v\ngot  %x\nwant %x", err, got, want)
	}
}

func TestInnerError_refusesIPv6(t *testing.T) {
	of := func(outer, inner string, f func(b []byte)) []byte {
		b := errorPacket6(switch6, host6, 2, 0, 1400, unhex(outer+inner))
		f(b)
		fixICMP6(b)
		return b
	}
	nothing := func([]byte) {}
	const quote, in = 48, 88
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"TCP", of(golden6in6, goldenInner6, func(b []byte) { b[6] = 6 }), ErrNotTunnelError},
		{"behind an extension header", of(golden6in6, goldenInner6, func(b []byte) { b[6] = 60 }), ErrNotTunnelError},
		{"an echo", of(golden6in6, goldenInner6, func(b []byte) { b[40] = 128 }), ErrNotTunnelError},
		{"type 0", of(golden6in6, goldenInner6, func(b []byte) { b[40] = 0 }), ErrNotTunnelError},
		{"a neighbour's advertisement", of(golden6in6, goldenInner6, func(b []byte) { b[40] = 136 }), ErrNotTunnelError},
		{"about plain TCP", of("", goldenInner6, nothing), ErrNotTunnelError},
		{"about IPv4", of(goldenOuter, goldenInner, nothing), ErrNotTunnelError},
		{"about another host's packet", of(golden6in6, goldenInner6, func(b []byte) { b[quote+8]++ }), ErrNotTunnelError},
		{"to another host", of(golden6in6, goldenInner6, func(b []byte) { b[39]++ }), ErrNotTunnelError},
		{"about a packet that was forwarded", of(golden6in6, goldenInner6, func(b []byte) { b[in+8]++ }), ErrNotTunnelError},
		{"a quote without the ports", of(golden6in6, goldenInner6[:94], nothing), ErrTruncated},
		{"a quote without ports of IPv4", of(golden4in6, goldenInner[:54], nothing), ErrTruncated},
		{"no inner packet", of(golden6in6, "", nothing), ErrTruncated},
		{"a quote that ends before RFC 4884's extension", of(golden6in6, goldenInner6, func(b []byte) { b[40], b[44] = 1, 6 }), ErrTruncated},
		{"a quote that ends in the outer header", of(golden6in6, goldenInner6, func(b []byte) { b[40], b[44] = 3, 1 }), ErrTruncated},
		{"no ICMP header", of(golden6in6, goldenInner6, func(b []byte) { b[5] = 7 }), ErrTruncated},
		{"a jumbogram", func() []byte {
			b := errorPacket6(switch6, host6, 2, 0, 1400, nil)
			b[4], b[5], b[6] = 0, 0, 0
			return b
		}(), ErrNotTunnelError},
		{"about IPv4 that claims IPv6", of(golden6in6, goldenInner, nothing), ErrVersion},
		{"about a nested tunnel", of(golden6in6, goldenInner6, func(b []byte) { b[in+6] = 41 }), ErrNested},
		{"about IPv4's nested tunnel", of(golden4in6, goldenInner, func(b []byte) { b[in+9] = 4 }), ErrNested},
		{"about an error", of(golden6in6, goldenInner6, func(b []byte) { b[in+6], b[in+40] = 58, 2 }), ErrOurOwn},
		{"about a redirect", of(golden6in6, goldenInner6, func(b []byte) { b[in+6], b[in+40] = 58, 137 }), ErrOurOwn},
		{"about an echo", of(golden6in6, goldenInner6, func(b []byte) { b[in+6], b[in+40] = 58, 128 }), nil},
		{"wrong checksum", func() []byte { b := of(golden6in6, goldenInner6, nothing); b[42]++; return b }(), ErrChecksum},
		{"damaged address", func() []byte { b := of(golden6in6, goldenInner6, nothing); b[8]++; return b }(), ErrChecksum},
	} {
		before := bytes.Clone(c.b)
		if got, about, err := InnerError(c.b); err != c.want || err != nil && (got != nil || about != nil || !bytes.Equal(before, c.b)) {
			t.Errorf("%s: %x, %v, want %v", c.name, got, err, c.want)
		}
	}
	for n := range 1 + 40 + 8 + 40 + 40 {
		b := errorPacket6(switch6, host6, 2, 0, 1400, unhex(golden6in6+goldenInner6))
		if _, _, err := InnerError(b[:n:n]); err != ErrTruncated {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// An ICMPv6 error has at most 1280 bytes, however much a switch has quoted (RFC 4443 §2.4).
func TestInnerError_quotesAtMostTheLeastMTU(t *testing.T) {
	inner := append(unhex(goldenInner6), make([]byte, 3000)...)
	for name, b := range map[string][]byte{
		"6in4": errorPacket(3, 4, 1500, append(unhex(golden6in4), inner...)),
		"6in6": errorPacket6(switch6, host6, 2, 0, 1500, append(unhex(golden6in6), inner...)),
	} {
		got, about, err := InnerError(b)
		if err != nil || len(got) != 1280 || !bytes.Equal(about, inner[:1280-48]) || slowICMP6(got) != 0 {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func TestInnerError6_allocatesNothing(t *testing.T) {
	for _, b := range [][]byte{
		errorPacket(3, 4, 1500, unhex(golden6in4+goldenInner6)),
		errorPacket6(switch6, host6, 2, 0, 1500, unhex(golden6in6+goldenInner6)),
		errorPacket6(switch6, host6, 2, 0, 1500, unhex(golden4in6+goldenInner)),
	} {
		buf := make([]byte, len(b))
		if n := testing.AllocsPerRun(100, func() {
			copy(buf, b)
			if _, _, err := InnerError(buf); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func FuzzInnerError6(f *testing.F) {
	f.Add(errorPacket(3, 4, 1400, unhex(golden6in4+goldenInner6)))
	f.Add(errorPacket6(switch6, host6, 2, 0, 1400, unhex(golden6in6+goldenInner6)))
	f.Add(errorPacket6(switch6, host6, 1, 3, 0, unhex(golden4in6+goldenInner)))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		got, about, err := InnerError(b)
		if err != nil {
			if got != nil || about != nil || !bytes.Equal(b, before) {
				t.Fatalf("%v, but %x became %x", err, before, b)
			}
			return
		}
		if &got[0] != &b[0] || !bytes.Contains(before, about) {
			t.Fatalf("%x of %x", about, before)
		}
		if got[0]>>4 == 4 {
			ihl, n, err := lengths(got)
			if err != nil || n != len(got) || !valid(got[:ihl]) || slowSum(got[ihl:]) != 0 || about[0]>>4 != 4 || got[ihl] != 3 {
				t.Fatalf("%x: %v", got, err)
			}
			return
		}
		if n, err := length6(got); err != nil || n != len(got) || n > 1280 || slowICMP6(got) != 0 || about[0]>>4 != 6 ||
			got[40] != 1 && got[40] != 2 || got[40] == 2 && binary.BigEndian.Uint32(got[44:]) < 1280 || !bytes.Equal(got[24:40], about[8:24]) {
			t.Fatalf("%x: %v", got, err)
		}
	})
}
