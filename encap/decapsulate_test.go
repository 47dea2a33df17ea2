package encap

import (
	"bytes"
	"errors"
	"testing"
)

func TestDecapsulate_golden(t *testing.T) {
	b := append(tunnelled(), "padding"...)
	inner, err := Decapsulate(b)
	if err != nil || !bytes.Equal(inner, unhex(goldenInner)) {
		t.Fatalf("%x, %v", inner, err)
	}
	if &inner[0] != &b[Overhead] {
		t.Error("inner packet is a copy")
	}
	if cap(inner) != len(inner) {
		t.Error("appending to the inner packet would overwrite what is behind it")
	}
}

func TestDecapsulate_skipsOptionsAndPadding(t *testing.T) {
	outer := append(unhex(goldenOuter), 1, 1, 1, 0) // three NOPs and an end
	outer[0], outer[3] = 0x46, 48+4
	fix(outer)
	inner := append(unhex(goldenInner)[:20], 1, 1, 1, 0, 'd', 'a', 't', 'a')
	inner[0], inner[3] = 0x46, 28
	fix(inner)
	b := append(append(outer, inner...), 0xaa, 0xbb) // Ethernet's padding
	if got, err := Decapsulate(b); err != nil || !bytes.Equal(got, inner) {
		t.Errorf("%x, %v; want %x", got, err, inner)
	}
	// Padding between the inner packet's end and the outer's is left out too.
	b = tunnelled()
	b[Overhead+3]--
	fix(b[Overhead:])
	if got, err := Decapsulate(b); err != nil || len(got) != 27 {
		t.Errorf("%x, %v; want 27 bytes", got, err)
	}
}

func TestDecapsulate_errors(t *testing.T) {
	const in = Overhead
	set := func(i int, v byte) func([]byte) []byte {
		return func(b []byte) []byte { b[i] = v; return b }
	}
	for _, c := range []struct {
		name string
		edit func(b []byte) []byte
		raw  bool // leave the checksums alone
		want error
	}{
		{"outer version", set(0, 0x75), false, ErrVersion},
		{"outer IHL 4", set(0, 0x44), true, ErrIHL},
		{"outer IHL beyond packet", set(0, 0x4f), true, ErrTruncated},
		{"outer length below header", set(3, 19), false, ErrTruncated},
		{"outer length beyond packet", set(3, 49), false, ErrTruncated},
		{"outer checksum", set(10, 0), true, ErrChecksum},
		{"UDP", set(9, 17), true, ErrNotIPIP},
		{"IPv4 that claims to be IPv6", func(b []byte) []byte { b[9] = 41; fix(b[:in]); return b }, true, ErrVersion},
		{"first fragment", set(6, 0x20), false, ErrFragment},
		{"last fragment", set(7, 1), false, ErrFragment},
		{"inner IPv6", set(in, 0x65), true, ErrVersion},
		{"inner IHL 0", set(in, 0x40), true, ErrIHL},
		{"inner IHL beyond packet", set(in, 0x4f), true, ErrTruncated},
		{"inner length below header", set(in+3, 0), false, ErrTruncated},
		{"inner length beyond outer", set(in+3, 29), false, ErrTruncated},
		{"inner checksum", set(in+11, 0), true, ErrChecksum},
		{"IP-in-IP-in-IP", set(in+9, 4), false, ErrNested},
		{"mark on Not-ECT", func(b []byte) []byte { b[1], b[in+1] = 3, 0; return b }, false, ErrECN},
		{"unchanged", set(9, 4), false, nil},
	} {
		b := c.edit(tunnelled())
		if !c.raw {
			fix(b[:in])
			fix(b[in:])
		}
		before := bytes.Clone(b)
		if _, err := Decapsulate(b); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if !bytes.Equal(b, before) {
			t.Errorf("%s: changed the bytes", c.name)
		}
	}
}

func TestDecapsulate_truncatedAnywhere(t *testing.T) {
	for n := range len(tunnelled()) {
		if _, err := Decapsulate(tunnelled()[:n:n]); !errors.Is(err, ErrTruncated) {
			t.Errorf("%d bytes: %v, want %v", n, err, ErrTruncated)
		}
	}
}

// Every pair of ECN fields through bytes: the table's result, a right checksum
// and nothing else changed.
func TestDecapsulate_ecn(t *testing.T) {
	for inner := NotECT; inner <= CE; inner++ {
		for outer := NotECT; outer <= CE; outer++ {
			b := tunnelled()
			b[1] = 0x28 | byte(outer)
			b[Overhead+1] = 0xfc | byte(inner)
			fix(b[:Overhead])
			fix(b[Overhead:])
			want := bytes.Clone(b[Overhead:])
			ecn, ok := decapsulateECN(inner, outer)
			want[1] = 0xfc | byte(ecn)
			fix(want)
			got, err := Decapsulate(b)
			if !ok {
				if err != ErrECN {
					t.Errorf("%v in %v: %v, want %v", inner, outer, err, ErrECN)
				}
			} else if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v in %v: %x, %v; want %x", inner, outer, got, err, want)
			}
		}
	}
}

func BenchmarkDecapsulate(b *testing.B) {
	p := tunnelled()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decapsulate(p); err != nil {
			b.Fatal(err)
		}
	}
}
