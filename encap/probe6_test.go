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
	origin6 = netip.MustParseAddr("2001:db8::2")
	target6 = netip.MustParseAddr("2001:db8:3:1::3")
	via6    = netip.MustParseAddr("2001:db8:ffff::1")
)

// request6 is request over IPv6, with all that the payload has room for.
func request6() Probe {
	return Probe{Kind: ProbeRequest, Path: 0x0102, Token: 0x1122334455667788, Origin: origin6, Target: target6, Via: via6, Carrier: CarrierSRv6}
}

// udpValid6 is the obvious check of the UDP checksum of an IPv6 packet (RFC 8200 §8.1).
func udpValid6(b []byte) bool {
	pseudo := bytes.Clone(b[8:40])
	pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(len(b)-40))
	pseudo = append(pseudo, 0, 0, 0, 17)
	pseudo = append(pseudo, b[40:]...)
	s := 0
	for i := range pseudo {
		s += int(pseudo[i]) << (8 * (1 - i%2))
	}
	for s>>16 != 0 {
		s = s>>16 + s&0xffff
	}
	return s == 0xffff && (b[46] != 0 || b[47] != 0)
}

// mended6 makes the checksum of a packet right that was tampered with.
func mended6(b []byte) []byte {
	binary.BigEndian.PutUint16(b[46:], 0)
	binary.BigEndian.PutUint16(b[46:], ^fold(probeDatagram6.sum6(b)))
	return b
}

func TestAppendProbe_bytesOnTheWire6(t *testing.T) {
	got := hex.EncodeToString(probe(t, request6()))
	want := "6d000000" + "002c1140" + "20010db8000000000000000000000002" + "20010db8000300010000000000000003" + // IPv6
		"247b247b002c" + "3149" + // UDP
		"77667062" + "01020102" + "1122334455667788" + "20010db8ffff00000000000000000001" + "01000000"
	if got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestProbe_roundTrip6(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	addr := func() netip.Addr {
		a := [16]byte{0x20, 1, 0xd, 0xb8, 15: byte(1 + rng.IntN(4))}
		return netip.AddrFrom16(a)
	}
	for range 2000 {
		p := Probe{
			Kind: ProbeKind(1 + rng.IntN(3)), Path: uint16(rng.Uint32()), Token: rng.Uint64(), Carrier: Carrier(rng.IntN(2)),
			Origin: addr(), Target: origin6.Next().Next().Next().Next(), Padding: max(0, rng.IntN(200)-100), AsData: rng.IntN(2) == 0,
		}
		if p.Kind == Boomerang {
			p.Target = p.Origin
		}
		if rng.IntN(2) == 0 {
			p.Via = addr()
		}
		thereAndBack(t, p, ProbeLen6+p.Padding, udpValid6)
	}
}

func TestAppendProbe_refuses6(t *testing.T) {
	zoned, mapped := netip.MustParseAddr("fe80::1%eth0"), netip.MustParseAddr("::ffff:10.0.0.1")
	for name, change := range map[string]func(*Probe){
		"origin of IPv4":    func(p *Probe) { p.Origin = origin },
		"target of IPv4":    func(p *Probe) { p.Target = target },
		"mapped target":     func(p *Probe) { p.Target = mapped },
		"no origin":         func(p *Probe) { p.Origin = netip.Addr{} },
		"no target":         func(p *Probe) { p.Target = netip.Addr{} },
		"origin with zone":  func(p *Probe) { p.Origin = zoned },
		"target with zone":  func(p *Probe) { p.Target = zoned },
		"via of IPv4":       func(p *Probe) { p.Via, p.Padding = target, 16 },
		"mapped via":        func(p *Probe) { p.Via = mapped },
		"via with zone":     func(p *Probe) { p.Via = zoned },
		"via unspecified":   func(p *Probe) { p.Via = netip.IPv6Unspecified() },
		"kind":              func(p *Probe) { p.Kind = 0 },
		"boomerang":         func(p *Probe) { p.Kind = Boomerang },
		"too long":          func(p *Probe) { p.Padding = MaxProbeLen - ProbeLen6 + 1 },
		"padding below 0":   func(p *Probe) { p.Padding = -1 },
		"much padding":      func(p *Probe) { p.Padding = 1 << 40 },
		"IPv4 with via6":    func(p *Probe) { p.Origin, p.Target, p.Padding = origin, target, 16 },
		"boomerang of both": func(p *Probe) { p.Kind, p.Origin = Boomerang, origin },
	} {
		p := request6()
		change(&p)
		if b, err := AppendProbe([]byte{7}, p); err == nil || len(b) != 1 {
			t.Errorf("%s: %x, %v", name, b, err)
		}
	}
}

func TestParseProbe_refuses6(t *testing.T) {
	set := func(i int, v ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[i:], v); return mended6(b) }
	}
	mapped := []byte{10: 0xff, 11: 0xff, 12: 10, 15: 1}
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   error
	}{
		"short":              {func(b []byte) []byte { return b[:ProbeLen6-1] }, ErrNotProbe},
		"IPv5":               {set(0, 0x5d), ErrNotProbe},
		"IPv4":               {set(0, 0x45), ErrNotProbe},
		"TCP":                {set(6, 6), ErrNotProbe},
		"fragment":           {set(6, 44), ErrNotProbe},
		"port":               {set(41, 0x7c), ErrNotProbe},
		"longer":             {set(5, 0x30), ErrNotProbe},
		"shorter":            {set(5, 0x28), ErrNotProbe},
		"jumbo":              {set(4, 0, 0), ErrNotProbe},
		"magic":              {set(48, 0), ErrNotProbe},
		"UDP checksum":       {func(b []byte) []byte { b[60]++; return b }, ErrChecksum},
		"another's":          {func(b []byte) []byte { b[39]++; return b }, ErrChecksum},
		"no checksum":        {func(b []byte) []byte { b[46], b[47] = 0, 0; return b }, ErrChecksum},
		"UDP length":         {set(45, 0x2b), ErrTruncated},
		"version":            {set(52, 2), ErrProbeVersion},
		"kind 0":             {set(53, 0), ErrProbeKind},
		"kind 4":             {set(53, 4), ErrProbeKind},
		"far boomerang":      {set(53, byte(Boomerang)), ErrProbeAddress},
		"request to oneself": {set(24, []byte(origin6.AsSlice())...), ErrProbeAddress},
		"mapped source":      {set(8, mapped...), ErrProbeAddress},
		"mapped destination": {set(24, mapped...), ErrProbeAddress},
		"mapped via":         {set(64, mapped...), ErrProbeAddress},
	} {
		b := c.change(probe(t, request6()))
		if p, err := ParseProbe(b); !errors.Is(err, c.want) || p != (Probe{}) {
			t.Errorf("%s: %+v, %v; want %v", name, p, err, c.want)
		}
	}
	// A flow label of a switch's own, a hop limit and what is to be 0 do not matter.
	b := probe(t, request6())
	b[1], b[3], b[7], b[83] = b[1]|5, 9, 3, 1
	if p, err := ParseProbe(mended6(b)); err != nil || p != request6() {
		t.Errorf("%+v, %v", p, err)
	}
}

// A reply goes back to the origin in the class of its request, with all that it says.
func TestReplyProbe_answersInPlace6(t *testing.T) {
	for _, asData := range []bool{false, true} {
		for _, padding := range []int{0, 1, 1400} {
			want := request6()
			want.AsData, want.Padding = asData, padding
			b := probe(t, want)
			b[1] |= 3 << 4 // a congestion mark on the way
			b[7] = 3
			path, err := ReplyProbe(b)
			if err != nil || path != 0x0102 {
				t.Fatalf("path %#x, %v", path, err)
			}
			want.Kind = ProbeReply
			if !bytes.Equal(b, probe(t, want)) {
				t.Errorf("reply %x", b)
			}
			if netip.AddrFrom16([16]byte(b[8:])) != target6 || netip.AddrFrom16([16]byte(b[24:])) != origin6 {
				t.Errorf("reply goes from %x to %x", b[8:24], b[24:40])
			}
			if got, err := ParseProbe(b); err != nil || got != want {
				t.Errorf("%+v came back as %+v, %v", want, got, err)
			}
		}
	}
	for _, p := range []Probe{{Kind: ProbeReply, Origin: origin6, Target: target6}, {Kind: Boomerang, Origin: origin6, Target: origin6}} {
		b := probe(t, p)
		was := bytes.Clone(b)
		if _, err := ReplyProbe(b); err != ErrProbeKind || !bytes.Equal(b, was) {
			t.Errorf("%v: %v", p.Kind, err)
		}
	}
}

func TestProbe_padding6(t *testing.T) {
	for _, padding := range []int{1, 2, 3, 524, 1460 - ProbeLen6, MaxProbeLen - ProbeLen6} {
		p := request6()
		p.Padding = padding
		b := probe(t, p)
		if len(b) != ProbeLen6+padding || !IsProbe(b) || !udpValid6(b) || IsProbe(b[:len(b)-1]) {
			t.Fatalf("%d bytes of padding: %d bytes", padding, len(b))
		}
		o, err := NewIPIPOuter(origin6, via6)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Encapsulate(append(make([]byte, MaxOverhead), b...), 0); err != nil {
			t.Errorf("%d bytes of padding: %v", padding, err)
		}
		b[len(b)-1] ^= 1
		if _, err := ParseProbe(b); err != ErrChecksum {
			t.Errorf("%d bytes of padding, the last wrong: %v", padding, err)
		}
	}
}

func TestProbe_allocatesNothing6(t *testing.T) {
	buf := make([]byte, 0, ProbeLen6)
	n := testing.AllocsPerRun(100, func() {
		b, _ := AppendProbe(buf, request6())
		if _, err := ParseProbe(b); err != nil {
			t.Fatal(err)
		}
		ReplyProbe(b)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// tooBig6 is what a router sends about a packet, of which it quotes the beginning, that a
// link of an MTU does not take.
func tooBig6(packet []byte, mtu uint32, quote int) []byte {
	icmp := append(make([]byte, 8), packet[:min(quote, len(packet))]...)
	icmp[0] = 2
	binary.BigEndian.PutUint32(icmp[4:], mtu)
	b := make([]byte, 40, 40+len(icmp))
	b[0], b[6], b[7] = 0x60, 58, 64
	binary.BigEndian.PutUint16(b[4:], uint16(len(icmp)))
	copy(b[8:], via6.AsSlice())
	copy(b[24:], origin6.AsSlice())
	binary.BigEndian.PutUint16(icmp[2:], ^fold(sumICMP6(b, icmp)))
	return append(b, icmp...)
}

func TestProbeTooBig6(t *testing.T) {
	p := request6()
	p.Padding = 1360
	inner := probe(t, p)
	o, err := NewIPIPOuter(origin6, via6)
	if err != nil {
		t.Fatal(err)
	}
	outer, err := o.Encapsulate(append(make([]byte, MaxOverhead), inner...), 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		packet []byte
		quote  int
		mtu    int
		err    error
	}{
		"outer, all that fits": {outer, 1232, 1360, nil},
		"outer, token":         {outer, 40 + 64, 1360, nil},
		"outer, no token":      {outer, 40 + 63, 0, ErrNotProbe},
		"inner, all that fits": {inner, 1232, 1400, nil},
		"inner, no token":      {inner, 63, 0, ErrNotProbe},
		"another's packet":     {unhex(goldenInner6), 1232, 0, ErrNotProbe},
		"an IPv4 probe":        {probe(t, request()), 1232, 0, ErrNotProbe},
		"nothing is quoted":    {inner, 0, 0, ErrNotProbe},
	} {
		token, mtu, err := ProbeTooBig(tooBig6(c.packet, 1400, c.quote))
		if err != c.err || mtu != c.mtu || err == nil && token != p.Token {
			t.Errorf("%s: token %x, MTU %d, %v; want %d, %v", name, token, mtu, err, c.mtu, c.err)
		}
	}
	for name, c := range map[string]struct {
		change func(b []byte) []byte
		want   error
	}{
		"checksum":    {func(b []byte) []byte { b[50] ^= 1; return b }, ErrChecksum},
		"unreachable": {func(b []byte) []byte { b[40] = 1; return b }, ErrNotProbe},
		"an echo":     {func(b []byte) []byte { b[40] = 128; return b }, ErrNotProbe},
		"UDP":         {func(b []byte) []byte { b[6] = 17; return b }, ErrNotProbe},
		"cut off":     {func(b []byte) []byte { return b[:len(b)-1] }, ErrTruncated},
		"no ICMP":     {func(b []byte) []byte { b[4], b[5] = 0, 7; return b }, ErrTruncated},
		"short":       {func(b []byte) []byte { return b[:47] }, ErrNotProbe},
		"the version": {func(b []byte) []byte { return b[:1] }, ErrNotProbe},
		"the probe":   {func([]byte) []byte { return inner }, ErrNotProbe},
	} {
		if token, mtu, err := ProbeTooBig(c.change(tooBig6(inner, 1400, 1232))); err != c.want || token != 0 || mtu != 0 {
			t.Errorf("%s: %x, %d, %v", name, token, mtu, err)
		}
	}
	if _, mtu, err := ProbeTooBig(tooBig6(outer, 1<<31, 1232)); err != nil || mtu != 0xffff-40 {
		t.Errorf("of 2 GB: %d, %v", mtu, err)
	}
	if _, mtu, err := ProbeTooBig(tooBig6(outer, 39, 1232)); err != nil || mtu != 0 {
		t.Errorf("of 39 bytes: %d, %v", mtu, err)
	}
}

func BenchmarkIsProbe6(b *testing.B) {
	other := unhex(goldenInner6 + "00000000000000000000000000000000000000000000000000000000000000000000000000000000")
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
