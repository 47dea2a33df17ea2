package encap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// errorPacket is an ICMP error from the switch 10.0.2.1 to 10.0.0.2.
func errorPacket(kind, code byte, mtu uint16, quote []byte) []byte {
	b := append(make([]byte, 28), quote...)
	b[0], b[8], b[9] = 0x45, 63, 1
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	copy(b[12:], []byte{10, 0, 2, 1, 10, 0, 0, 2})
	fix(b)
	b[20], b[21] = kind, code
	binary.BigEndian.PutUint16(b[26:], mtu)
	fixICMP(b)
	return b
}

// fixICMP puts the right checksum into the ICMP packet in b.
func fixICMP(b []byte) {
	icmp := b[int(b[0]&0xf)*4:]
	icmp[2], icmp[3] = 0, 0
	binary.BigEndian.PutUint16(icmp[2:], slowSum(icmp))
}

// slowSum is slowChecksum for what has its checksum elsewhere and any length.
func slowSum(b []byte) uint16 {
	shifted := append(make([]byte, 12), b...) // slowChecksum leaves out bytes 10 and 11
	if len(shifted)%2 == 1 {
		shifted = append(shifted, 0)
	}
	return slowChecksum(shifted)
}

// A switch's "fragmentation needed" as Linux sends it, and what the sender of
// the inner packet would have got if the link of 1400 bytes had one of 1380.
func TestInnerError_golden(t *testing.T) {
	b := errorPacket(3, 4, 1400, tunnelled())
	want := errorPacket(3, 4, 1380, unhex(goldenInner))
	got, about, err := InnerError(append(b, "padding"...))
	if err != nil || !bytes.Equal(got, want) || !bytes.Equal(about, unhex(goldenInner)) {
		t.Errorf("%v\ngot  %x\nwant %x", err, got, want)
	}
}

func TestInnerError_followsRFC2003(t *testing.T) {
	type result struct {
		kind, code byte
		mtu        uint16
	}
	for _, c := range []struct {
		name       string
		kind, code byte
		mtu        uint16
		want       result // zero: the tunnel's own business
	}{
		{"network unreachable", 3, 0, 0, result{3, 0, 0}},
		{"host unreachable", 3, 1, 0, result{3, 1, 0}},
		{"protocol unreachable", 3, 2, 0, result{3, 1, 0}},
		{"port unreachable", 3, 3, 0, result{}},
		{"too big", 3, 4, 9000, result{3, 4, 8980}},
		{"too big for a small link", 3, 4, 572, result{3, 4, 552}},
		{"too big for a link that there is not", 3, 4, 60, result{3, 4, 552}},
		{"too big from before RFC 1191", 3, 4, 0, result{3, 4, 552}},
		{"source route failed", 3, 5, 0, result{}},
		{"prohibited", 3, 13, 0, result{3, 13, 0}},
		{"time exceeded", 11, 0, 0, result{3, 1, 0}},
		{"fragments lost", 11, 1, 0, result{}},
		{"bad parameter", 12, 0, 0, result{}},
	} {
		b := errorPacket(c.kind, c.code, c.mtu, tunnelled())
		before := bytes.Clone(b)
		got, _, err := InnerError(b)
		if c.want == (result{}) {
			if !errors.Is(err, ErrOurOwn) || !bytes.Equal(b, before) {
				t.Errorf("%s: %v, %x", c.name, err, got)
			}
			continue
		}
		if want := errorPacket(c.want.kind, c.want.code, c.want.mtu, unhex(goldenInner)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v\ngot  %x\nwant %x", c.name, err, got, want)
		}
	}
}

func TestInnerError_refuses(t *testing.T) {
	change := func(f func(b []byte)) []byte {
		b := errorPacket(3, 4, 1400, tunnelled())
		f(b)
		fix(b)
		fixICMP(b)
		return b
	}
	icmp := func(kind byte) func(b []byte) {
		return func(b []byte) { b[48+9], b[48+20] = 1, kind }
	}
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"no packet", nil, ErrTruncated},
		{"not ICMP", change(func(b []byte) { b[9] = 6 }), ErrNotTunnelError},
		{"a fragment", change(func(b []byte) { b[6] = 0x20 }), ErrNotTunnelError},
		{"an echo", change(func(b []byte) { b[20] = 8 }), ErrNotTunnelError},
		{"a redirect", change(func(b []byte) { b[20] = 5 }), ErrNotTunnelError},
		{"about plain TCP", change(func(b []byte) { b[28+9] = 6 }), ErrNotTunnelError},
		{"about an outer header with options", change(func(b []byte) { b[28] = 0x46 }), ErrNotTunnelError},
		{"about another host's packet", change(func(b []byte) { b[28+12]++ }), ErrNotTunnelError},
		{"to another host", change(func(b []byte) { b[19]++ }), ErrNotTunnelError},
		{"about a packet that was forwarded", change(func(b []byte) { b[48+12]++ }), ErrNotTunnelError},
		{"a quote as short as in RFC 792", errorPacket(3, 4, 1400, tunnelled()[:28]), ErrTruncated},
		{"a quote without the ports", errorPacket(3, 4, 1400, tunnelled()[:47]), ErrTruncated},
		{"a quote that ends before RFC 4884's extension", change(func(b []byte) { b[25] = 11 }), ErrTruncated},
		{"a quote that ends in the outer header", change(func(b []byte) { b[25] = 2 }), ErrTruncated},
		{"no ICMP header", change(func(b []byte) { b[3] = 27 }), ErrTruncated},
		{"about IPv6 inside", change(func(b []byte) { b[48] = 0x65 }), ErrVersion},
		{"about a header too short", change(func(b []byte) { b[48] = 0x44 }), ErrIHL},
		{"about a nested tunnel", change(func(b []byte) { b[48+9] = 4 }), ErrNested},
		{"about an error", change(icmp(3)), ErrOurOwn},
		{"about a redirect", change(icmp(5)), ErrOurOwn},
		{"about a later fragment", change(func(b []byte) { b[48+7] = 1 }), ErrOurOwn},
	} {
		before := bytes.Clone(c.b)
		if got, about, err := InnerError(c.b); err != c.want || got != nil || about != nil || !bytes.Equal(before, c.b) {
			t.Errorf("%s: %x, %v, want %v", c.name, got, err, c.want)
		}
	}
	for _, query := range []byte{0, 8, 13} {
		if _, _, err := InnerError(change(icmp(query))); err != nil {
			t.Errorf("about a query of type %d: %v", query, err)
		}
	}
	flip := func(i int) {
		b := errorPacket(3, 4, 1400, tunnelled())
		b[i] ^= 0x40
		if _, _, err := InnerError(b); err == nil {
			t.Errorf("byte %d is wrong, and nobody noticed", i)
		}
	}
	for i := range errorPacket(3, 4, 1400, tunnelled()) {
		flip(i)
	}
}

// What stands behind the quote is not of the packet that the error is about.
func TestInnerError_leavesExtensionsOut(t *testing.T) {
	quote := append(tunnelled(), make([]byte, 80)...) // RFC 4884 §5.1: 128 bytes at least
	b := errorPacket(3, 4, 1400, append(bytes.Clone(quote), 0x20, 0, 0, 0, 0, 8, 1, 1, 9, 9, 9, 9))
	b[25] = byte(len(quote) / 4)
	fixICMP(b)
	want := errorPacket(3, 4, 1380, quote[Overhead:])
	if got, _, err := InnerError(b); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v\ngot  %x\nwant %x", err, got, want)
	}
}

func TestInnerError_allocatesNothing(t *testing.T) {
	b := errorPacket(3, 4, 1400, tunnelled())
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

func FuzzInnerError(f *testing.F) {
	f.Add(errorPacket(3, 4, 1400, tunnelled()))
	f.Add(errorPacket(11, 0, 0, append(tunnelled(), 1, 2, 3)))
	f.Add(errorPacket(3, 1, 0, tunnelled()[:47]))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		got, about, err := InnerError(b)
		if err != nil {
			if got != nil || about != nil || !bytes.Equal(b, before) {
				t.Fatalf("%v, but %x became %x", err, before, b)
			}
			return
		}
		if before[0]>>4 == 6 || got[0]>>4 == 6 { // FuzzInnerError6 looks at these
			return
		}
		ihl, n, err := lengths(got)
		if err != nil || n != len(got) || !valid(got[:ihl]) || &got[0] != &b[0] {
			t.Fatalf("%x: %v", got, err)
		}
		icmp := got[ihl:]
		if slowSum(icmp) != 0 || icmp[0] != 3 || icmp[1] == 3 || &icmp[8] != &about[0] {
			t.Fatalf("ICMP %x", icmp)
		}
		// The quote is a part of the one that came, less the outer header; the
		// rest of the IP header is as it was.
		if quote := before[ihl+8+Overhead:]; len(about) < 28 || !bytes.HasPrefix(quote, about) {
			t.Fatalf("quote %x of %x", about, before)
		}
		before[2], before[3], before[10], before[11] = got[2], got[3], got[10], got[11]
		if !bytes.Equal(before[:ihl], got[:ihl]) {
			t.Fatalf("header %x became %x", before[:ihl], got[:ihl])
		}
	})
}
