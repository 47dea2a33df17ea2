package encap

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
)

var (
	origin = netip.MustParseAddr("10.0.0.2")
	target = netip.MustParseAddr("10.3.1.3")
)

func probe(t testing.TB, p Probe) []byte {
	t.Helper()
	b, err := AppendProbe(nil, p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func request() Probe {
	return Probe{Kind: ProbeRequest, Path: 0x0102, Token: 0x1122334455667788, Origin: origin, Target: target}
}

func TestAppendProbe_bytesOnTheWire(t *testing.T) {
	got := hex.EncodeToString(probe(t, request()))
	want := "45d00034000040004011" + "24e2" + "0a000002" + "0a030103" + // IPv4
		"247b247b0020" + "9186" + // UDP
		"77667062" + "01020102" + "1122334455667788" + "0a000002" + "0a030103"
	if got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestProbe_roundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	for range 2000 {
		p := Probe{
			Kind: ProbeKind(1 + rng.IntN(3)), Path: uint16(rng.Uint32()), Token: rng.Uint64(),
			Origin: netip.AddrFrom4([4]byte{10, byte(rng.IntN(4)), 0, 2}),
			Target: netip.AddrFrom4([4]byte{10, byte(rng.IntN(4)), 1, 3}),
		}
		if p.AsData = rng.IntN(2) == 0; p.Kind == Boomerang {
			p.Target = p.Origin
		}
		thereAndBack(t, p, ProbeLen, func(b []byte) bool {
			return udpValid(b) && slowChecksum(b[:20]) == binary.BigEndian.Uint16(b[10:])
		})
	}
}

// A sum of zero must be sent as ffff: in IPv4 it would stand for no checksum, and IPv6 has no
// datagrams without one.
func TestProbe_checksumIsNeverZero(t *testing.T) {
	for _, c := range []struct {
		p     Probe
		sum   int // its offset
		valid func([]byte) bool
	}{{request(), 26, udpValid}, {request6(), 46, udpValid6}} {
		seen := false
		for i := range uint64(1 << 16) {
			c.p.Token = i
			b := probe(t, c.p)
			sum := binary.BigEndian.Uint16(b[c.sum:])
			if seen = seen || sum == 0xffff; sum == 0 || !c.valid(b) {
				t.Fatalf("%v, token %#x: checksum %#x", c.p.Origin, i, sum)
			}
		}
		if !seen {
			t.Fatalf("%v: no token had a sum of zero: the test shows nothing", c.p.Origin)
		}
	}
}

// thereAndBack encodes a probe, checks the packet, and decodes it.
func thereAndBack(t *testing.T, p Probe, length int, valid func([]byte) bool) {
	t.Helper()
	b := probe(t, p)
	if len(b) != length || len(b) != p.Len() || !IsProbe(b) || !valid(b) {
		t.Fatalf("%+v became %x", p, b)
	}
	if got, err := ParseProbe(append(b, 0, 0)); err != nil || got != p {
		t.Fatalf("%+v came back as %+v, %v", p, got, err)
	}
}

// A bouncing address comes to the target and back home, in a probe of any length that has
// room for it; without its bit in the IPv4 ID the padding is no address.
func TestProbe_via(t *testing.T) {
	via := netip.MustParseAddr("172.16.0.1")
	for _, padding := range []int{4, 6, 1000} {
		p := request()
		p.Via, p.Padding = via, padding
		b := probe(t, p)
		if got, err := ParseProbe(b); err != nil || got != p || !udpValid(b) {
			t.Errorf("padding %d: %+v, %v", padding, got, err)
		}
		if _, err := ReplyProbe(b); err != nil {
			t.Fatal(err)
		}
		if got, err := ParseProbe(b); err != nil || got.Via != via || got.Kind != ProbeReply || got.Padding != padding {
			t.Errorf("padding %d: the reply is %+v, %v", padding, got, err)
		}
		b[4] = 0
		if got, err := ParseProbe(mended(&probeDatagram, b)); err != nil || got.Via.IsValid() {
			t.Errorf("padding %d: %+v, %v without the bit", padding, got, err)
		}
	}
	for name, p := range map[string]Probe{
		"no room": {Kind: ProbeRequest, Origin: origin, Target: target, Via: via, Padding: 3},
		"IPv6":    {Kind: ProbeRequest, Origin: origin, Target: target, Via: netip.MustParseAddr("2001:db8::1"), Padding: 16},
	} {
		if b, err := AppendProbe([]byte{7}, p); err == nil || len(b) != 1 {
			t.Errorf("%s: %x, %v", name, b, err)
		}
	}
}

func TestAppendProbe_refuses(t *testing.T) {
	v6 := netip.MustParseAddr("2001:db8::1")
	for name, p := range map[string]Probe{
		"origin":    {Kind: ProbeRequest, Origin: v6, Target: target},
		"target":    {Kind: ProbeRequest, Origin: origin},
		"kind":      {Kind: 4, Origin: origin, Target: target},
		"boomerang": {Kind: Boomerang, Origin: origin, Target: target},
	} {
		if b, err := AppendProbe([]byte{7}, p); err == nil || len(b) != 1 {
			t.Errorf("%s: %x, %v", name, b, err)
		}
	}
}

func TestParseProbe_refuses(t *testing.T) {
	set := func(i int, v byte) func([]byte) []byte {
		return func(b []byte) []byte { b[i] = v; return mended(&probeDatagram, b) }
	}
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   error
	}{
		"short":         {func(b []byte) []byte { return b[:ProbeLen-1] }, ErrNotProbe},
		"empty":         {func([]byte) []byte { return nil }, ErrNotProbe},
		"IPv6":          {set(0, 0x65), ErrNotProbe},
		"TCP":           {set(9, 6), ErrNotProbe},
		"port":          {set(21, 0x7c), ErrNotProbe},
		"longer":        {set(3, ProbeLen+4), ErrNotProbe},
		"fragment":      {set(7, 1), ErrNotProbe},
		"more":          {set(6, 0x20), ErrNotProbe},
		"magic":         {set(28, 0), ErrNotProbe},
		"IP checksum":   {func(b []byte) []byte { b[8]--; return b }, ErrChecksum},
		"UDP checksum":  {func(b []byte) []byte { b[40]++; return b }, ErrChecksum},
		"no checksum":   {func(b []byte) []byte { b[26], b[27] = 0, 0; return b }, ErrChecksum},
		"UDP length":    {set(25, 31), ErrTruncated},
		"version":       {set(32, 2), ErrProbeVersion},
		"kind 0":        {set(33, 0), ErrProbeKind},
		"kind 4":        {set(33, 4), ErrProbeKind},
		"source":        {set(15, 9), ErrProbeAddress},
		"destination":   {set(19, 9), ErrProbeAddress},
		"a reply's way": {set(33, byte(ProbeReply)), ErrProbeAddress},
		"far boomerang": {set(33, byte(Boomerang)), ErrProbeAddress},
	} {
		b := c.change(probe(t, request()))
		if p, err := ParseProbe(b); !errors.Is(err, c.want) || p != (Probe{}) {
			t.Errorf("%s: %+v, %v; want %v", name, p, err, c.want)
		}
	}
	b := probe(t, request())
	copy(b[12:16], b[16:20])
	copy(b[44:48], b[16:20])
	if _, err := ParseProbe(mended(&probeDatagram, b)); err != ErrProbeAddress {
		t.Errorf("request to oneself: %v", err)
	}
}

// What waits as data does is of data's class, there and back, whatever marks it got.
func TestReplyProbe_keepsTheClass(t *testing.T) {
	for _, asData := range []bool{false, true} {
		p := request()
		p.AsData = asData
		b := probe(t, p)
		was := b[1]
		if (was == ProbeTOS) == asData {
			t.Fatalf("TOS %#x", was)
		}
		b[1] |= 3 // a congestion mark on the way
		b = mended(&probeDatagram, b)
		if _, err := ReplyProbe(b); err != nil || b[1] != was {
			t.Errorf("the reply's TOS is %#x, the request's was %#x; %v", b[1], was, err)
		}
		if got, err := ParseProbe(b); err != nil || got.AsData != asData {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestReplyProbe_answersInPlace(t *testing.T) {
	b := probe(t, request())
	b[1] |= 3 // a congestion mark on the way
	fix(b)
	path, err := ReplyProbe(b)
	if err != nil || path != 0x0102 {
		t.Fatalf("path %#x, %v", path, err)
	}
	want := request()
	want.Kind = ProbeReply
	if !bytes.Equal(b, probe(t, want)) {
		t.Errorf("reply %x", b)
	}
	if netip.AddrFrom4([4]byte(b[12:])) != target || netip.AddrFrom4([4]byte(b[16:])) != origin {
		t.Errorf("reply goes from %v to %v", b[12:16], b[16:20])
	}
	for _, p := range []Probe{want, {Kind: Boomerang, Origin: origin, Target: origin}} {
		b := probe(t, p)
		was := bytes.Clone(b)
		if _, err := ReplyProbe(b); err != ErrProbeKind || !bytes.Equal(b, was) {
			t.Errorf("%v: %v", p.Kind, err)
		}
	}
}

func TestProbe_allocatesNothing(t *testing.T) {
	buf := make([]byte, 0, ProbeLen)
	n := testing.AllocsPerRun(100, func() {
		b, _ := AppendProbe(buf, request())
		if _, err := ParseProbe(b); err != nil {
			t.Fatal(err)
		}
		ReplyProbe(b)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzProbe(f *testing.F) {
	f.Add(probe(f, request()))
	f.Add(probe(f, Probe{Kind: Boomerang, Origin: origin, Target: origin}))
	f.Add(probe(f, request6()))
	f.Add(probe(f, Probe{Kind: Boomerang, Origin: origin6, Target: origin6, Padding: 3, AsData: true}))
	f.Add(probe(f, Probe{Kind: ProbeReply, Origin: origin6, Target: target6}))
	f.Add(unhex(goldenInner))
	f.Add(unhex(goldenInner6))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParseProbe(b)
		if err == nil {
			// What is not said by p is an IP header's own affair, and what it must say is 0.
			again := probe(t, p)
			if b[0]>>4 == 6 {
				if !udpValid6(b[:p.Len()]) {
					t.Fatalf("unsound packet %x accepted", b)
				}
				if !bytes.Equal(again[8:46], b[8:46]) || !bytes.Equal(again[48:81], b[48:81]) {
					t.Fatalf("%x means %+v, which is %x", b, p, again)
				}
			} else {
				if !udpValid(even(b[:p.Len()])) || !valid(b[:20]) {
					t.Fatalf("unsound packet %x accepted", b)
				}
				if !bytes.Equal(again[28:ProbeLen], b[28:ProbeLen]) || !bytes.Equal(again[12:26], b[12:26]) {
					t.Fatalf("%x means %+v, which is %x", b, p, again)
				}
			}
		}
		before := bytes.Clone(b)
		if _, err := ReplyProbe(b); err != nil {
			if !bytes.Equal(b, before) {
				t.Fatalf("%v, but %x became %x", err, before, b)
			}
			return
		}
		if r, err := ParseProbe(b); err != nil || r.Kind != ProbeReply || r.Token != p.Token || r.Origin != p.Origin || r.Via != p.Via {
			t.Fatalf("reply %x: %+v, %v", b, r, err)
		}
	})
}

func BenchmarkIsProbe(b *testing.B) {
	other := unhex(goldenInner + "00000000000000000000000000000000000000000000000000")
	n := 0
	for range b.N {
		if IsProbe(other) {
			n++
		}
	}
	if n > 0 {
		b.Fatal("a probe?")
	}
}

func BenchmarkReplyProbe(b *testing.B) {
	packet := probe(b, request())
	buf := bytes.Clone(packet)
	for range b.N {
		copy(buf, packet)
		if _, err := ReplyProbe(buf); err != nil {
			b.Fatal(err)
		}
	}
}
