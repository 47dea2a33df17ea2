package encap

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

// A TCP segment without payload from 2001:db8::2 to 2001:db8:3::3 with traffic class 0x2a,
// flow label 5.1a2b and hop limit 63, and its outer headers to a bouncing switch.
const (
	goldenInner6 = "62a51a2b0014063f" + "20010db8000000000000000000000002" + "20010db8000300000000000000000003" +
		"138800500000000100000002501000ff00000000"
	golden6in4 = "452a0050beef400040296665" + "0a0000020a040101"
	golden6in6 = "62a00000003c2940" + "20010db8000000000000000000000002" + "20010db8ffff00000000000000000004"
	golden4in6 = "62a00000001c0440" + "20010db8000000000000000000000002" + "20010db8ffff00000000000000000004"
	goldenDT6  = "62a00000003c2940" + "fd7765667400000000000000" + "0a000002" + "5f0003040201fd00" + "0000000000000000"
)

var (
	host6   = netip.MustParseAddr("2001:db8::2")
	bounce6 = netip.MustParseAddr("2001:db8:ffff::4")
)

func mustOuter6(t testing.TB) Outer {
	t.Helper()
	o, err := NewIPIPOuter(host6, bounce6)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// allOuters are all kinds of outer headers.
func allOuters(t testing.TB) map[string]Outer {
	return map[string]Outer{"ipip": mustIPIPOuter(t), "ipip over IPv6": mustOuter6(t), "srv6": mustSRv6(t)}
}

func TestOuter_goldenOfAllFamilies(t *testing.T) {
	for name, c := range map[string]struct {
		outer Outer
		inner string
		want  []byte
	}{
		"4in4":      {mustIPIPOuter(t), goldenInner, unhex(goldenOuter)},
		"6in4":      {mustIPIPOuter(t), goldenInner6, unhex(golden6in4)},
		"4in6":      {mustOuter6(t), goldenInner, unhex(golden4in6)},
		"6in6":      {mustOuter6(t), goldenInner6, unhex(golden6in6)},
		"4 in SRv6": {mustSRv6(t), goldenInner, unhex(goldenSRv6)},
		"6 in SRv6": {mustSRv6(t), goldenInner6, unhex(goldenDT6)},
	} {
		inner := unhex(c.inner)
		got, err := c.outer.Encapsulate(append(behind(inner), "padding"...), 0xbeef)
		if want := append(append(c.want, inner...), "padding"...); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s:\ngot  %x, %v\nwant %x", name, got, err, want)
			continue
		}
		if back, err := Decapsulate(got); err != nil || !bytes.Equal(back, inner) || cap(back) != len(back) {
			t.Errorf("%s: %x came back as %x, %v", name, inner, back, err)
		}
	}
}

func TestNewIPIPOuter_errors(t *testing.T) {
	for _, c := range []struct {
		src, dst netip.Addr
		names    string
	}{
		{src, bounce6, "source"},
		{host6, via, "source"},
		{netip.Addr{}, bounce6, "source"},
		{host6, netip.Addr{}, "source"}, // of IPv4, as which nothing counts
		{netip.MustParseAddr("fe80::1%eth0"), bounce6, "source"},
		{host6, netip.MustParseAddr("fe80::1%eth0"), "destination"},
	} {
		o, err := NewIPIPOuter(c.src, c.dst)
		if err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%v to %v: %v, want an error naming the %s", c.src, c.dst, err, c.names)
		}
		if _, err := o.Encapsulate(behind(unhex(goldenInner6)), 0); err == nil {
			t.Error("a header that is none encapsulates")
		}
	}
	if o, err := NewIPIPOuter(netip.MustParseAddr("::ffff:10.0.0.2"), netip.MustParseAddr("::ffff:10.4.1.1")); err != nil || o != mustIPIPOuter(t) {
		t.Errorf("mapped addresses are not IPv4: %v", err)
	}
}

func TestOuter_overhead(t *testing.T) {
	for name, o := range allOuters(t) {
		want := 40
		from := host6
		if name == "ipip" {
			want, from = 20, src
		}
		if o.Overhead() != want || o.carrier.OverheadFrom(from) != want {
			t.Errorf("%s: %d bytes, %d, want %d", name, o.Overhead(), o.carrier.OverheadFrom(from), want)
		}
	}
	if n := CarrierSRv6.OverheadFrom(src); n != 40 {
		t.Errorf("SRv6 from an IPv4 address: %d bytes", n)
	}
}

// Which inner packets nothing encapsulates, or not everything.
func TestOuter_refusesIPv6(t *testing.T) {
	edit := func(i int, v ...byte) []byte {
		b := behind(unhex(goldenInner6))
		copy(b[MaxOverhead+i:], v)
		return b
	}
	long := func(payload int) []byte {
		b := make([]byte, MaxOverhead+40+0xffff)
		copy(b, edit(4, byte(payload>>8), byte(payload)))
		return b
	}
	for name, c := range map[string]struct {
		b        []byte
		in4, in6 error
	}{
		"whole":                 {edit(0, 0x62), nil, nil},
		"no payload":            {edit(4, 0, 0), nil, nil},
		"39 bytes":              {behind(unhex(goldenInner6)[:39]), ErrTruncated, ErrTruncated},
		"payload cut off":       {behind(unhex(goldenInner6)[:59]), ErrTruncated, ErrTruncated},
		"BIG TCP's jumbogram":   {edit(4, 0, 0, 0), ErrJumbo, ErrJumbo},
		"hop-by-hop, with size": {edit(6, 0), nil, nil},
		"longest in IPv4":       {long(0xffff - 60), nil, nil},
		"longest in IPv6":       {long(0xffff - 40), ErrTooLong, nil},
		"one more":              {long(0xffff - 39), ErrTooLong, ErrTooLong},
		"longest of IPv6":       {long(0xffff), ErrTooLong, ErrTooLong},
	} {
		for kind, o := range allOuters(t) {
			want := c.in6
			if kind == "ipip" {
				want = c.in4
			}
			b := bytes.Clone(c.b)
			got, err := o.Encapsulate(b, 1)
			if err != want || err != nil && (got != nil || !bytes.Equal(b, c.b)) {
				t.Errorf("%s, %s: %v, want %v", name, kind, err, want)
			}
		}
	}
}

func TestDecapsulate_refusesIPv6(t *testing.T) {
	for name, c := range map[string]struct {
		outer string
		edit  func(outer, inner []byte)
		want  error
	}{
		"whole":                    {golden6in6, func(_, _ []byte) {}, nil},
		"TCP":                      {golden6in6, func(o, _ []byte) { o[6] = 6 }, ErrNotIPIP},
		"an extension header":      {golden6in6, func(o, _ []byte) { o[6] = 60 }, ErrNotIPIP},
		"a fragment":               {golden6in6, func(o, _ []byte) { o[6] = 44 }, ErrNotIPIP},
		"outer cut off":            {golden6in6, func(o, _ []byte) { o[5]++ }, ErrTruncated},
		"inner longer than outer":  {golden6in6, func(_, i []byte) { i[5]++ }, ErrTruncated},
		"inner jumbogram":          {golden6in6, func(_, i []byte) { i[4], i[5], i[6] = 0, 0, 0 }, ErrJumbo},
		"inner says IPv4":          {golden6in6, func(_, i []byte) { i[0] = 0x45 }, ErrVersion},
		"IPv6 that claims IPv4":    {golden6in6, func(o, _ []byte) { o[6] = 4 }, ErrVersion},
		"IPv6 in IPv6 in IPv6":     {golden6in6, func(_, i []byte) { i[6] = 41 }, ErrNested},
		"IPv4 in IPv6 in IPv6":     {golden6in6, func(_, i []byte) { i[6] = 4 }, ErrNested},
		"mark on Not-ECT":          {golden6in6, func(o, i []byte) { o[1] |= 0x30; i[1] &^= 0x30 }, ErrECN},
		"in IPv4":                  {golden6in4, func(_, _ []byte) {}, nil},
		"in IPv4, nested":          {golden6in4, func(_, i []byte) { i[6] = 41 }, ErrNested},
		"in IPv4, longer":          {golden6in4, func(_, i []byte) { i[5]++ }, ErrTruncated},
		"in IPv4, mark on Not-ECT": {golden6in4, func(o, i []byte) { o[1] |= 3; i[1] &^= 0x30; fix(o) }, ErrECN},
		"in IPv4, fragment":        {golden6in4, func(o, _ []byte) { o[6] = 0x20; fix(o) }, ErrFragment},
		"in IPv4, checksum":        {golden6in4, func(o, _ []byte) { o[8]++ }, ErrChecksum},
		"in IPv4 that claims IPv4": {golden6in4, func(o, _ []byte) { o[9] = 4; fix(o) }, ErrVersion},
	} {
		outer, inner := unhex(c.outer), unhex(goldenInner6)
		c.edit(outer, inner)
		b := append(outer, inner...)
		before := bytes.Clone(b)
		if _, err := Decapsulate(b); err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if !bytes.Equal(b, before) {
			t.Errorf("%s: changed the bytes", name)
		}
		if c.outer == golden6in6 {
			want := c.want
			if want == ErrNotIPIP {
				want = ErrNotSRv6
			}
			if _, err := DecapsulateSRv6(b); err != want {
				t.Errorf("%s: DecapsulateSRv6: %v, want %v", name, err, want)
			}
		}
	}
	b := unhex(golden6in6 + goldenInner6)
	for n := range len(b) {
		if _, err := Decapsulate(b[:n:n]); err != ErrTruncated {
			t.Errorf("%d bytes: %v, want %v", n, err, ErrTruncated)
		}
	}
}

// setTOS writes a whole TOS byte or traffic class.
func setTOS(b []byte, tos byte) {
	if b[0]>>4 == 4 {
		b[1] = tos
		fix(b)
		return
	}
	word := binary.BigEndian.Uint32(b)
	binary.BigEndian.PutUint32(b, word&0xf00fffff|uint32(tos)<<20)
}

// tosOf reads one.
func tosOf(b []byte) byte {
	if b[0]>>4 == 4 {
		return b[1]
	}
	return byte(binary.BigEndian.Uint32(b) >> 20)
}

// RFC 6040 at both ends, in all combinations of families: what the outer header says first,
// and what is left of a mark that it got on the way. Figure 4 is written out anew.
func TestECN_throughAllFamilies(t *testing.T) {
	const drop = 9
	//                      outer: Not-ECT ECT(1) ECT(0) CE
	figure4 := [4][4]byte{
		NotECT: {0, 0, 0, drop},
		ECT1:   {1, 1, 1, 3},
		ECT0:   {2, 1, 2, 3},
		CE:     {3, 3, 3, 3},
	}
	for name, o := range allOuters(t) {
		for _, packet := range []string{goldenInner, goldenInner6} {
			for tos := range 256 {
				inner := unhex(packet)
				setTOS(inner, byte(tos))
				b, err := o.Encapsulate(behind(inner), 7)
				if err != nil || tosOf(b) != byte(tos) {
					t.Fatalf("%s: class %#02x became %#02x, %v", name, tos, tosOf(b), err)
				}
				for mark := range byte(4) {
					c := bytes.Clone(b)
					setTOS(c, 0x54|mark) // a DSCP of somebody's on the way
					want := figure4[tos&3][mark]
					got, err := Decapsulate(c)
					if want == drop {
						if err != ErrECN {
							t.Fatalf("%s: %v in %v: %v", name, ECN(tos&3), ECN(mark), err)
						}
						continue
					}
					expected := bytes.Clone(inner)
					setTOS(expected, byte(tos)&^3|want)
					if err != nil || !bytes.Equal(got, expected) {
						t.Fatalf("%s: %v in %v: %x, %v, want %x", name, ECN(tos&3), ECN(mark), got, err, expected)
					}
				}
			}
		}
	}
}

// The path may not depend on what is inside: the outer flow label is 0.
func TestOuter_flowLabelIsZero(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	for name, o := range allOuters(t) {
		if !o.six {
			continue
		}
		for range 1000 {
			inner := unhex(goldenInner6)
			inner[1], inner[2], inner[3] = inner[1]&0xf0|byte(rng.Uint32()&0xf), byte(rng.Uint32()), byte(rng.Uint32())
			b, err := o.Encapsulate(behind(inner), uint16(rng.Uint32()))
			if err != nil || binary.BigEndian.Uint32(b)&0xfffff != 0 {
				t.Fatalf("%s, seed %d: %x, %v", name, seed, b[:4], err)
			}
		}
	}
}

func TestIPv6_allocatesNothing(t *testing.T) {
	for name, o := range allOuters(t) {
		b := behind(unhex(goldenInner6))
		if n := testing.AllocsPerRun(100, func() {
			p, err := o.Encapsulate(b, 1)
			if err == nil {
				_, err = Decapsulate(p)
			}
			if err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkOuter_6in4(b *testing.B) { benchmark6(b, mustIPIPOuter(b)) }
func BenchmarkOuter_6in6(b *testing.B) { benchmark6(b, mustOuter6(b)) }

func benchmark6(b *testing.B, o Outer) {
	p := behind(unhex(goldenInner6))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := o.Encapsulate(p, 1); err != nil {
			b.Fatal(err)
		}
	}
}

// The labels of IPv6 inside are those of IPv4 but for the last, wherever that is.
func TestEndIn6(t *testing.T) {
	for n := range maxSIDs + 1 {
		ports := make([]int, n)
		for i := range ports {
			ports[i] = 0xdd - i
		}
		sids, err := SIDs(ports)
		if err != nil {
			t.Fatal(err)
		}
		o, err := NewSRv6Outer(src6, sids)
		if err != nil {
			t.Fatal(err)
		}
		b, err := o.Encapsulate(behind(unhex(goldenInner6)), 0)
		if err != nil {
			t.Fatal(err)
		}
		to := netip.AddrFrom16([16]byte(b[24:40]))
		back, err := ParseSIDs(to)
		want := sids.As16()
		want[2+n] = SIDDecap6
		if err != nil || len(back) != n || to != netip.AddrFrom16(want) {
			t.Errorf("%v became %v, %v, %v", sids, to, back, err)
		}
		if EndIn6(b); netip.AddrFrom16([16]byte(b[24:40])) != to {
			t.Errorf("%v: twice is not once", sids)
		}
	}
}
