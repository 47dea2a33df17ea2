package encap

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

var (
	src = netip.MustParseAddr("10.0.0.2")
	via = netip.MustParseAddr("10.4.1.1")
)

// A UDP datagram from 10.0.0.2 to 10.3.1.3 with DSCP 10, ECT(0) and DF, and its
// outer header to the bouncing switch 10.4.1.1 with ID beef.
const (
	goldenInner = "452a001c123440003f11146c0a0000020a030103" + "1388177000080000"
	goldenOuter = "452a0030beef4000400466aa0a0000020a040101"
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func mustIPIP(t testing.TB) IPIP {
	t.Helper()
	h, err := NewIPIP(src, via)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func tunnelled() []byte { return unhex(goldenOuter + goldenInner) }

// fix puts the right checksum into the IPv4 header at the start of b.
func fix(b []byte) {
	binary.BigEndian.PutUint16(b[10:], slowChecksum(b[:int(b[0]&0xf)*4]))
}

func TestNewIPIP_refusesWhatIsNotIPv4(t *testing.T) {
	v6 := netip.MustParseAddr("2001:db8::1")
	for _, c := range []struct {
		src, dst netip.Addr
		names    string
	}{
		{v6, via, "source"},
		{src, v6, "destination"},
		{netip.Addr{}, via, "source"},
		{src, netip.Addr{}, "destination"},
	} {
		if _, err := NewIPIP(c.src, c.dst); err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("NewIPIP(%v, %v): %v, want an error naming the %s", c.src, c.dst, err, c.names)
		}
	}
	mapped := netip.MustParseAddr("::ffff:10.0.0.2")
	if h, err := NewIPIP(mapped, via); err != nil || h != mustIPIP(t) {
		t.Errorf("NewIPIP(%v): %v, want the same as for %v", mapped, err, src)
	}
}

func TestEncapsulate_golden(t *testing.T) {
	h := mustIPIP(t)
	b := append(bytes.Repeat([]byte{0xee}, Overhead), unhex(goldenInner)...)
	if err := h.Encapsulate(b, 0xbeef); err != nil {
		t.Fatal(err)
	}
	if want := tunnelled(); !bytes.Equal(b, want) {
		t.Errorf("\ngot  %x\nwant %x", b, want)
	}
}

func TestEncapsulate_copiesOnlyDFOfTheFlags(t *testing.T) {
	h := mustIPIP(t)
	for inner, want := range map[uint16]uint16{
		0: 0, flagDF: flagDF, flagMF: 0, 0x00b9: 0, flagMF | 0x0123: 0, 0x8000: 0, flagDF | flagMF: flagDF,
	} {
		b := tunnelled()
		binary.BigEndian.PutUint16(b[Overhead+6:], inner)
		if err := h.Encapsulate(b, 0); err != nil {
			t.Fatal(err)
		}
		if got := binary.BigEndian.Uint16(b[6:]); got != want {
			t.Errorf("inner flags %04x: outer %04x, want %04x", inner, got, want)
		}
	}
}

func TestEncapsulate_leavesPaddingOut(t *testing.T) {
	h := mustIPIP(t)
	b := append(tunnelled(), 0, 0, 0, 0)
	if err := h.Encapsulate(b, 0xbeef); err != nil || !bytes.Equal(b[:48], tunnelled()) {
		t.Errorf("%v %x", err, b)
	}
}

func TestEncapsulate_errors(t *testing.T) {
	h := mustIPIP(t)
	big := make([]byte, Overhead+0xffff)
	copy(big, tunnelled())
	length := func(n int) func([]byte) []byte {
		return func([]byte) []byte {
			binary.BigEndian.PutUint16(big[Overhead+2:], uint16(n))
			return big
		}
	}
	for _, c := range []struct {
		name string
		edit func(b []byte) []byte
		want error
	}{
		{"nothing", func(b []byte) []byte { return nil }, ErrTruncated},
		{"no inner packet", func(b []byte) []byte { return b[:Overhead] }, ErrTruncated},
		{"short header", func(b []byte) []byte { return b[:Overhead+19] }, ErrTruncated},
		{"short packet", func(b []byte) []byte { return b[:len(b)-1] }, ErrTruncated},
		{"length below header", func(b []byte) []byte { b[Overhead+3] = 19; return b }, ErrTruncated},
		{"IPv6", func(b []byte) []byte { b[Overhead] = 0x65; return b }, ErrVersion},
		{"IHL 4", func(b []byte) []byte { b[Overhead] = 0x44; return b }, ErrIHL},
		{"longest", length(0xffff - Overhead), nil},
		{"one too long", length(0xffff - Overhead + 1), ErrTooLong},
		{"longest inner", length(0xffff), ErrTooLong},
	} {
		b := c.edit(tunnelled())
		before := bytes.Clone(b)
		err := h.Encapsulate(b, 1)
		if err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if err != nil && !bytes.Equal(b, before) {
			t.Errorf("%s: refused, but changed the bytes", c.name)
		}
	}
}

// randomInner returns a sound IPv4 packet that is not IP-in-IP.
func randomInner(rng *rand.Rand) []byte {
	ihl := 20 + 4*rng.IntN(11)
	b := make([]byte, ihl+rng.IntN(1500))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	b[0] = 0x40 | byte(ihl/4)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	if b[9] == protoIPIP {
		b[9] = 6
	}
	fix(b)
	return b
}

func TestEncapsulate_roundTrip(t *testing.T) {
	const seed = 2
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		var a, c [4]byte
		binary.BigEndian.PutUint32(a[:], rng.Uint32())
		binary.BigEndian.PutUint32(c[:], rng.Uint32())
		h, err := NewIPIP(netip.AddrFrom4(a), netip.AddrFrom4(c))
		if err != nil {
			t.Fatal(err)
		}
		inner := randomInner(rng)
		roundTrip(t, h, inner, uint16(rng.Uint32()))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func roundTrip(t *testing.T, h IPIP, inner []byte, id uint16) {
	b := append(make([]byte, Overhead), inner...)
	if err := h.Encapsulate(b, id); err != nil {
		t.Fatalf("%x: %v", inner, err)
	}
	o := b[:Overhead]
	switch {
	case binary.BigEndian.Uint16(o[10:]) != slowChecksum(o):
		t.Fatalf("%x: checksum, want %04x", o, slowChecksum(o))
	case o[1] != inner[1], o[8] != 64, o[9] != 4,
		int(binary.BigEndian.Uint16(o[2:])) != len(b),
		binary.BigEndian.Uint16(o[4:]) != id,
		!bytes.Equal(o[12:], h.header[12:]):
		t.Fatalf("outer header %x of %x", o, inner)
	}
	got, err := Decapsulate(b)
	if err != nil || !bytes.Equal(got, inner) {
		t.Fatalf("%x came back as %x, %v", inner, got, err)
	}
}

func TestHotPath_allocatesNothing(t *testing.T) {
	h := mustIPIP(t)
	b := tunnelled()
	if n := testing.AllocsPerRun(100, func() {
		if h.Encapsulate(b, 7) != nil {
			t.Fatal()
		}
		if _, err := Decapsulate(b); err != nil {
			t.Fatal(err)
		}
		if _, err := Decapsulate(b[:30]); err == nil {
			t.Fatal()
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEncapsulate(b *testing.B) {
	h := mustIPIP(b)
	p := append(make([]byte, Overhead), randomInner(rand.New(rand.NewPCG(3, 0)))...)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if h.Encapsulate(p, uint16(i)) != nil {
			b.Fatal()
		}
	}
}
