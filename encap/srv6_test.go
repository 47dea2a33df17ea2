package encap

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func labelled() []byte { return unhex(goldenSRv6 + goldenInner) }

func TestDecapsulateSRv6_golden(t *testing.T) {
	b := append(labelled(), "padding"...)
	inner, err := DecapsulateSRv6(b)
	if err != nil || !bytes.Equal(inner, unhex(goldenInner)) || &inner[0] != &b[ip6Overhead] || cap(inner) != len(inner) {
		t.Fatalf("%x (capacity %d), %v", inner, cap(inner), err)
	}
	// What is between the inner packet's end and the outer's is left out, too.
	b = labelled()
	b[ip6Overhead+3]--
	fix(b[ip6Overhead:])
	if inner, err = DecapsulateSRv6(b); err != nil || len(inner) != 27 {
		t.Errorf("%x, %v; want 27 bytes", inner, err)
	}
}

func TestDecapsulateSRv6_errors(t *testing.T) {
	const in = ip6Overhead
	set := func(i int, v byte) func([]byte) []byte {
		return func(b []byte) []byte { b[i] = v; return b }
	}
	cut := func(n int) func([]byte) []byte {
		return func(b []byte) []byte { return b[:n:n] }
	}
	for _, c := range []struct {
		name string
		edit func(b []byte) []byte
		raw  bool // leave the inner checksum alone
		want error
	}{
		{"nothing", cut(0), true, ErrTruncated},
		{"IPv4", func([]byte) []byte { return tunnelled() }, true, ErrNotSRv6},
		{"UDP inside", set(6, 17), true, ErrNotSRv6},
		{"IPv4 that claims to be IPv6", set(6, 41), true, ErrVersion},
		{"routing header", set(6, 43), true, ErrNotSRv6},
		{"payload beyond packet", set(5, 29), true, ErrTruncated},
		{"payload too short", set(5, 27), true, ErrTruncated},
		{"jumbogram", set(5, 0), true, ErrTruncated},
		{"inner version", set(in, 0x65), true, ErrVersion},
		{"inner IHL 4", set(in, 0x44), true, ErrIHL},
		{"inner IHL beyond packet", set(in, 0x4f), true, ErrTruncated},
		{"inner length beyond outer", set(in+3, 29), false, ErrTruncated},
		{"inner checksum", set(in+11, 0), true, ErrChecksum},
		{"IP-in-IP inside", set(in+9, 4), false, ErrNested},
		{"mark on Not-ECT", func(b []byte) []byte { b[1] |= 0x30; b[in+1] = 0; return b }, false, ErrECN},
		{"unchanged", set(in+9, 17), false, nil},
	} {
		b := c.edit(labelled())
		if !c.raw {
			fix(b[in:])
		}
		before := bytes.Clone(b)
		if _, err := DecapsulateSRv6(b); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if !bytes.Equal(b, before) {
			t.Errorf("%s: changed the bytes", c.name)
		}
	}
	for n := range len(labelled()) {
		if _, err := DecapsulateSRv6(labelled()[:n:n]); err != ErrTruncated {
			t.Errorf("%d bytes: %v, want %v", n, err, ErrTruncated)
		}
	}
}

// All 16 combinations of RFC 6040 §4.2, Fig. 4, written out anew; 9 drops.
func TestDecapsulateSRv6_ecn(t *testing.T) {
	const drop = 9
	//                      outer: Not-ECT ECT(1) ECT(0) CE
	want := [4][4]byte{
		NotECT: {0, 0, 0, drop},
		ECT1:   {1, 1, 1, 3},
		ECT0:   {2, 1, 2, 3},
		CE:     {3, 3, 3, 3},
	}
	for inner := range byte(4) {
		for outer := range byte(4) {
			b := labelled()
			b[ip6Overhead+1] = 0xfc | inner
			fix(b[ip6Overhead:])
			b[1] = b[1]&^0x30 | outer<<4
			expected := bytes.Clone(b[ip6Overhead:])
			expected[1] = 0xfc | want[inner][outer]
			fix(expected)
			got, err := DecapsulateSRv6(b)
			switch {
			case want[inner][outer] == drop:
				if err != ErrECN {
					t.Errorf("%v in %v: %v, want %v", ECN(inner), ECN(outer), err, ErrECN)
				}
			case err != nil || !bytes.Equal(got, expected):
				t.Errorf("%v in %v: %x, %v; want %x", ECN(inner), ECN(outer), got, err, expected)
			}
		}
	}
}

// The traffic class is the inner TOS, whatever it is, and does not reach into
// the version and the flow label.
func TestOuter_trafficClass(t *testing.T) {
	o := mustSRv6(t)
	for tos := range 256 {
		inner := unhex(goldenInner)
		inner[1] = byte(tos)
		b, err := o.Encapsulate(behind(inner), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := binary.BigEndian.Uint32(b), uint32(6<<28|tos<<20); got != want {
			t.Fatalf("TOS %#x: %#08x, want %#08x", tos, got, want)
		}
	}
}

func FuzzDecapsulateSRv6(f *testing.F) {
	f.Add(labelled())
	f.Add(labelled()[:50])
	marked := labelled()
	marked[1] |= 0x30
	f.Add(marked)
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		inner, err := DecapsulateSRv6(b)
		if err != nil {
			if inner != nil || !bytes.Equal(b, before) {
				t.Fatalf("%v, but %x became %x", err, before, b)
			}
			return
		}
		if inner[0]>>4 == 6 { // FuzzDecapsulate looks at these
			return
		}
		ihl := int(inner[0]&0xf) * 4
		if !valid(inner[:ihl]) || int(binary.BigEndian.Uint16(inner[2:])) != len(inner) || &inner[0] != &b[ip6Overhead] {
			t.Fatalf("inner packet %x of %x", inner, before)
		}
		// Nothing but the ECN bits and the checksum may differ.
		const in = ip6Overhead
		before[in+1] = before[in+1]&^3 | b[in+1]&3
		copy(before[in+10:in+12], b[in+10:])
		if !bytes.Equal(b, before) {
			t.Fatalf("%x became %x", before, b)
		}
	})
}
