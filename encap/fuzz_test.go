package encap

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func FuzzDecapsulate(f *testing.F) {
	f.Add(tunnelled())
	f.Add(tunnelled()[:30])
	marked := tunnelled()
	marked[1] |= 3
	fix(marked)
	f.Add(marked)
	f.Add(labelled())
	f.Add(unhex(golden6in4 + goldenInner6))
	f.Add(unhex(golden6in6 + goldenInner6))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		inner, err := Decapsulate(b)
		if err != nil {
			if inner != nil || !bytes.Equal(b, before) {
				t.Fatalf("%v, but %x became %x", err, before, b)
			}
			return
		}
		off := 40
		if b[0]>>4 == 4 {
			off = int(b[0]&0xf) * 4
		}
		if &inner[0] != &b[off] {
			t.Fatal("inner packet is not the bytes behind the outer header")
		}
		if inner[0]>>4 == 4 {
			ihl := int(inner[0]&0xf) * 4
			if slowChecksum(inner[:ihl]) != binary.BigEndian.Uint16(inner[10:]) && !valid(inner[:ihl]) {
				t.Fatalf("inner checksum of %x", inner)
			}
			if int(binary.BigEndian.Uint16(inner[2:])) != len(inner) || inner[9] == protoIPIP {
				t.Fatalf("inner packet %x", inner)
			}
			before[off+10], before[off+11] = b[off+10], b[off+11]
		} else if inner[0]>>4 != 6 || 40+int(binary.BigEndian.Uint16(inner[4:])) != len(inner) || inner[6] == protoIPIP || inner[6] == protoIPv6 {
			t.Fatalf("inner packet %x", inner)
		}
		// Nothing but the ECN bits and the checksum may differ.
		mask := uint16(0x0003)
		if inner[0]>>4 == 6 {
			mask = 0x0030
		}
		was, is := binary.BigEndian.Uint16(before[off:]), binary.BigEndian.Uint16(b[off:])
		binary.BigEndian.PutUint16(before[off:], was&^mask|is&mask)
		if !bytes.Equal(b, before) {
			t.Fatalf("%x became %x", before, b)
		}
	})
}

func FuzzEncapsulate(f *testing.F) {
	f.Add(unhex(goldenInner), uint16(1))
	f.Add(unhex(goldenInner)[:20], uint16(0))
	f.Fuzz(func(t *testing.T, inner []byte, id uint16) {
		h := mustIPIP(t)
		b := append(make([]byte, Overhead), inner...)
		if err := h.Encapsulate(b, id); err != nil {
			if _, _, e := lengths(inner); e == nil && len(inner) <= 0xffff-Overhead {
				t.Fatalf("sound packet %x refused: %v", inner, err)
			}
			return
		}
		if !valid(b[:Overhead]) || !bytes.Equal(b[Overhead:], inner) {
			t.Fatalf("%x became %x", inner, b)
		}
		ihl, n, _ := lengths(inner)
		if inner[9] == protoIPIP {
			return
		}
		fix(inner[:ihl])
		roundTrip(t, h, inner[:n], id)
	})
}

// sound reports whether b begins with an IPv4 or IPv6 packet that can be encapsulated.
func sound(b []byte) bool {
	if _, _, err := lengths(b); err == nil {
		return true
	}
	return len(b) >= 40 && b[0]>>4 == 6 && 40+int(binary.BigEndian.Uint16(b[4:])) <= len(b) &&
		(b[4] != 0 || b[5] != 0 || b[6] != 0)
}
