package lab

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"testing"

	"weft/fabric"
	"weft/internal/kernel/kerneltest"
)

// A spine takes the outer header off IPv6 in IPv6 (RFC 2473), with the congestion mark of RFC
// 6040, and refuses what it refuses of IPv4.
func TestDecap_six(t *testing.T) {
	l := upGraph(t, Config{Name: kerneltest.LabName("x"), Graph: operators(t, "leaf-spine:leaves=2,spines=1,hosts=1", 5)})
	l.becomes(t, "a way between the leaves", 1)
	out, in := openWire(t, l, l.mustLookup(t, "h1-1"), 0), openWire(t, l, l.mustLookup(t, "h2-1"), 0)
	src, dst, spine := six(t, l, "h1-1"), six(t, l, "h2-1"), six(t, l, "spine1")
	outer := func(class byte) kerneltest.IPv6 {
		return kerneltest.IPv6{Class: class, Hops: 64, Next: 41, Src: src, Dst: spine}
	}
	const experimental = 253
	inner := func(class byte) kerneltest.IPv6 {
		return kerneltest.IPv6{Class: class, Label: 0xabcde, Hops: 17, Next: experimental, Src: src, Dst: dst}
	}
	arrived := func() []byte {
		for {
			if b := in.Receive6(t); b[6] == experimental {
				return b
			}
		}
	}
	var want fabric.Counters
	counted := func(what string) {
		t.Helper()
		for _, s := range l.Status() {
			if s.Node == "spine1" && s.Counters != nil && *s.Counters != want {
				t.Errorf("%s: counters %+v, want %+v", what, *s.Counters, want)
				want = *s.Counters
			}
		}
	}
	payload := bytes.Repeat([]byte("weft!"), 200)
	for _, c := range []struct{ outer, inner, want byte }{ // all of RFC 6040's figure 4 but for the drop
		{0, 0, 0}, {0, 1, 1}, {0, 2, 2}, {0, 3, 3}, {1, 0, 0}, {1, 1, 1}, {1, 2, 1}, {1, 3, 3},
		{2, 0, 0}, {2, 1, 1}, {2, 2, 2}, {2, 3, 3}, {3, 1, 3}, {3, 2, 3}, {3, 3, 3},
	} {
		out.SendLabelled(t, outer(0x20|c.outer).Bytes(inner(0x48|c.inner).Bytes(payload)))
		want.Decapsulated++
		expect := inner(0x48 | c.want)
		expect.Hops -= 2 // the spine and the leaf
		if got := arrived(); !bytes.Equal(got, expect.Bytes(payload)) {
			t.Errorf("outer ECN %d, inner %d: got\n%swant\n%s", c.outer, c.inner, hex.Dump(got[:40]), hex.Dump(expect.Bytes(payload)[:40]))
		}
		counted("carried")
	}
	nested := outer(0)
	for _, c := range []struct {
		name   string
		cause  *uint64
		packet []byte
	}{
		{"other inner source", &want.Spoofed, outer(0).Bytes(kerneltest.IPv6{Hops: 9, Next: experimental, Src: dst, Dst: dst}.Bytes(payload))},
		{"nested", &want.Nested, outer(0).Bytes(nested.Bytes(inner(0).Bytes(payload)))},
		{"congestion marked, inner not capable", &want.ECN, outer(3).Bytes(inner(0).Bytes(payload))},
		{"inner truncated", &want.Malformed, outer(0).Bytes(inner(0).Bytes(nil)[:39])},
		{"inner not IPv6", &want.Malformed, outer(0).Bytes(changed(inner(0).Bytes(payload), func(b []byte) { b[0] = 0x45 }))},
		{"inner longer than outer", &want.Malformed, outer(0).Bytes(changed(inner(0).Bytes(payload), func(b []byte) { binary.BigEndian.PutUint16(b[4:], uint16(len(payload)+1)) }))},
	} {
		out.SendLabelled(t, c.packet)
		*c.cause++
		out.SendLabelled(t, outer(0).Bytes(inner(0).Bytes([]byte(c.name)))) // when that is there, the bad one is not late
		want.Decapsulated++
		if got := arrived(); !bytes.HasSuffix(got, []byte(c.name)) {
			t.Errorf("%s: arrived:\n%s", c.name, hex.Dump(got))
			arrived()
		}
		counted(c.name)
	}
	// IPv6 in IPv6 for others is forwarded like anything else.
	other := outer(0)
	other.Dst = dst
	out.SendLabelled(t, other.Bytes(inner(0).Bytes(payload)))
	for {
		if got := in.Receive6(t); got[6] == 41 {
			if !bytes.HasSuffix(got, inner(0).Bytes(payload)) {
				t.Errorf("for another:\n%s", hex.Dump(got))
			}
			break
		}
	}
	counted("for another")
}

func changed(b []byte, change func([]byte)) []byte {
	change(b)
	return b
}

// six returns the IPv6 address of a node.
func six(t *testing.T, l *Lab, name string) netip.Addr {
	t.Helper()
	for _, a := range l.addresses(t, name) {
		if a.Is6() {
			return a
		}
	}
	t.Fatalf("%s has no IPv6 address", name)
	return netip.Addr{}
}
