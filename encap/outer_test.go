package encap

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"
)

var (
	src6 = netip.MustParseAddr("fd77:6566:7400::a00:2")
	sids = netip.MustParseAddr("5f00:304:201:fe00::")
)

// goldenSRv6 is the outer IPv6 header of goldenInner from src6 along sids: class
// 0x2a, 28 bytes of payload, which is IPv4, hop limit 64.
const goldenSRv6 = "62a00000001c0440" + "fd7765667400000000000000" + "0a000002" +
	"5f0003040201fe00" + "0000000000000000"

func mustSRv6(t testing.TB) Outer {
	t.Helper()
	o, err := NewSRv6Outer(src6, sids)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func mustIPIPOuter(t testing.TB) Outer {
	t.Helper()
	o, err := NewIPIPOuter(src, via)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// behind returns inner behind the headroom that Outer wants, filled with
// something.
func behind(inner []byte) []byte {
	return append(bytes.Repeat([]byte{0xee}, MaxOverhead), inner...)
}

func TestOuter_golden(t *testing.T) {
	for name, c := range map[string]struct {
		outer Outer
		want  string
	}{
		"ipip": {mustIPIPOuter(t), goldenOuter},
		"srv6": {mustSRv6(t), goldenSRv6},
	} {
		b := behind(unhex(goldenInner))
		got, err := c.outer.Encapsulate(b, 0xbeef)
		if want := unhex(c.want + goldenInner); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s:\ngot  %x, %v\nwant %x", name, got, err, want)
		}
		if at := MaxOverhead - c.outer.Overhead(); &got[0] != &b[at] || bytes.Count(b[:at], []byte{0xee}) != at {
			t.Errorf("%s: not right before the inner packet, or wrote to %x", name, b[:at])
		}
	}
}

func TestOuter_comparable(t *testing.T) {
	other, err := NewSRv6Outer(src6, netip.MustParseAddr("5f00:304:201:1fe::"))
	if err != nil {
		t.Fatal(err)
	}
	if mustSRv6(t) != mustSRv6(t) || mustIPIPOuter(t) != mustIPIPOuter(t) || mustSRv6(t) == mustIPIPOuter(t) || mustSRv6(t) == other {
		t.Error("equal headers differ, or different ones are equal")
	}
}

// What is inside decides which of an operator's SIDs a packet is for, wherever their block is.
func TestNewSIDOuter_destinationByFamily(t *testing.T) {
	for _, block := range []string{"fcbb:bbbb:", "5f00:fe:"} {
		sid4, sid6 := netip.MustParseAddr(block+"1:fe04::"), netip.MustParseAddr(block+"1:fe::")
		o, err := NewSIDOuter(src6, sid4, sid6)
		if err != nil {
			t.Fatal(err)
		}
		inner6 := make([]byte, 60)
		inner6[0], inner6[5], inner6[6], inner6[7] = 0x60, 20, 59, 3
		for _, c := range []struct {
			inner []byte
			want  netip.Addr
			proto byte
		}{{unhex(goldenInner), sid4, 4}, {inner6, sid6, 41}} {
			got, err := o.Encapsulate(behind(c.inner), 1)
			if err != nil || o.Overhead() != 40 || len(got) != 40+len(c.inner) || got[6] != c.proto ||
				netip.AddrFrom16([16]byte(got[24:])) != c.want || netip.AddrFrom16([16]byte(got[8:])) != src6 {
				t.Errorf("%x, %v; want it to go to %v", got, err, c.want)
			}
			if back, err := DecapsulateSRv6(got); err != nil || !bytes.Equal(back, c.inner) {
				t.Errorf("decapsulated to %x, %v", back, err)
			}
		}
	}
	for _, c := range [][3]netip.Addr{{src, src6, src6}, {src6, src, src6}, {src6, src6, src}, {src6, src6, {}}} {
		o, err := NewSIDOuter(c[0], c[1], c[2])
		if err == nil {
			t.Errorf("%v is accepted", c)
		}
		if _, err := o.Encapsulate(behind(unhex(goldenInner)), 1); err != ErrVersion {
			t.Errorf("what is not valid encapsulates: %v", err)
		}
	}
}

func TestNewSRv6Outer_errors(t *testing.T) {
	for _, c := range []struct {
		src, sids netip.Addr
		names     string
	}{
		{src, sids, "source"},
		{netip.Addr{}, sids, "source"},
		{netip.MustParseAddr("::ffff:10.0.0.2"), sids, "source"},
		{netip.MustParseAddr("fe80::1%eth0"), sids, "source"},
		{src6, src6, "labels"},
		{src6, netip.Addr{}, "labels"},
		{src6, netip.MustParseAddr("5f00:304::"), "labels"},
	} {
		o, err := NewSRv6Outer(c.src, c.sids)
		if err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%v to %v: %v, want an error naming the %s", c.src, c.sids, err, c.names)
		}
		if _, err := o.Encapsulate(behind(unhex(goldenInner)), 0); err == nil {
			t.Error("a header that is none encapsulates")
		}
	}
	var zero Outer
	if _, err := zero.Encapsulate(behind(unhex(goldenInner)), 0); err != ErrVersion {
		t.Errorf("zero value: %v", err)
	}
}

func TestOuter_errors(t *testing.T) {
	edit := func(i int, v byte) []byte {
		b := behind(unhex(goldenInner))
		b[MaxOverhead+i] = v
		return b
	}
	long := make([]byte, MaxOverhead+0xffff)
	copy(long, behind(unhex(goldenInner)))
	binary.BigEndian.PutUint16(long[MaxOverhead+2:], 0xffff)
	for name, c := range map[string]struct {
		b          []byte
		ipip, srv6 error
	}{
		"no headroom":        {make([]byte, MaxOverhead-1), ErrTruncated, ErrTruncated},
		"no inner packet":    {behind(nil), ErrTruncated, ErrTruncated},
		"short header":       {behind(unhex(goldenInner)[:19]), ErrTruncated, ErrTruncated},
		"short packet":       {behind(unhex(goldenInner)[:27]), ErrTruncated, ErrTruncated},
		"short IPv6":         {edit(0, 0x65), ErrTruncated, ErrTruncated},
		"IPv5":               {edit(0, 0x55), ErrVersion, ErrVersion},
		"IHL 4":              {edit(0, 0x44), ErrIHL, ErrIHL},
		"longest of packets": {long, ErrTooLong, nil}, // IPv6 does not count its own header
	} {
		for _, o := range []struct {
			outer Outer
			want  error
		}{{mustIPIPOuter(t), c.ipip}, {mustSRv6(t), c.srv6}} {
			b := bytes.Clone(c.b)
			got, err := o.outer.Encapsulate(b, 1)
			if err != o.want || err != nil && (got != nil || !bytes.Equal(b, c.b)) {
				t.Errorf("%s, %d: %v, want %v", name, o.outer.Overhead(), err, o.want)
			}
		}
	}
}

func TestOuter_allocatesNothing(t *testing.T) {
	b := behind(unhex(goldenInner))
	for _, o := range []Outer{mustIPIPOuter(t), mustSRv6(t)} {
		if n := testing.AllocsPerRun(100, func() {
			p, err := o.Encapsulate(b, 1)
			if err == nil && o.carrier == CarrierSRv6 {
				_, err = DecapsulateSRv6(p)
			}
			if err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations", o.carrier, n)
		}
	}
}

func TestCarrier(t *testing.T) {
	for c, overhead := range map[Carrier]int{CarrierIPIP: 20, CarrierSRv6: 40, CarrierMPLS: 16} {
		if got, err := ParseCarrier(c.String()); err != nil || got != c || c.Overhead() != overhead || overhead > MaxOverhead {
			t.Errorf("%v: %v, %v, %d bytes, want %d", c, got, err, c.Overhead(), overhead)
		}
	}
	if _, err := ParseCarrier("gre"); err == nil || !strings.Contains(err.Error(), "ipip, srv6, mpls") {
		t.Errorf("gre: %v", err)
	}
	if c := Carrier(9); c.String() != "carrier 9" || c.Overhead() != 0 {
		t.Errorf("%v, %d bytes", c, c.Overhead())
	}
}

// Whatever is inside, a receiver gets it back.
func FuzzOuter(f *testing.F) {
	f.Add(unhex(goldenInner), uint16(1))
	f.Add(unhex(goldenInner)[:20], uint16(0))
	f.Add(unhex(goldenInner6), uint16(1))
	f.Fuzz(func(t *testing.T, inner []byte, id uint16) {
		for name, o := range allOuters(t) {
			b, err := o.Encapsulate(behind(inner), id)
			if err != nil {
				if sound(inner) && len(inner) <= 0xffff-MaxOverhead {
					t.Fatalf("%s: sound packet %x refused: %v", name, inner, err)
				}
				continue
			}
			if !bytes.Equal(b[o.Overhead():], inner) {
				t.Fatalf("%s: %x became %x", name, inner, b)
			}
			want := bytes.Clone(inner)
			if inner[0]>>4 == 4 {
				ihl, n, _ := lengths(inner)
				if inner[9] == protoIPIP {
					continue
				}
				want = want[:n]
				fix(b[o.Overhead():][:ihl])
				fix(want[:ihl])
			} else {
				n, _ := length6(inner)
				if want = want[:n]; inner[6] == protoIPIP || inner[6] == protoIPv6 {
					continue
				}
			}
			if got, err := Decapsulate(b); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: %x came back as %x, %v", name, want, got, err)
			}
		}
	})
}

func BenchmarkOuter_ipip(b *testing.B) {
	o, p := mustIPIPOuter(b), behind(unhex(goldenInner))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := o.Encapsulate(p, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOuter_srv6(b *testing.B) {
	o, p := mustSRv6(b), behind(unhex(goldenInner))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := o.Encapsulate(p, 1); err != nil {
			b.Fatal(err)
		}
	}
}
