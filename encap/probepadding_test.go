package encap

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A padded probe is one datagram of its length, whose checksum covers all of it;
// its reply is as long.
func TestProbe_padding(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 2))
	for _, padding := range []int{1, 2, 3, 4, 5, 524, 1400 - ProbeLen, 1480 - ProbeLen, 8948, MaxProbeLen - ProbeLen} {
		p := request()
		p.Padding, p.Carrier = padding, Carrier(padding%2)
		b := probe(t, p)
		if len(b) != ProbeLen+padding || !IsProbe(b) || !udpValid(even(b)) {
			t.Fatalf("%d bytes of padding: %d bytes, probe %v", padding, len(b), IsProbe(b))
		}
		if got, err := ParseProbe(append(b, 1, 2, 3)); err != nil || got != p {
			t.Fatalf("%+v came back as %+v, %v", p, got, err)
		}
		if IsProbe(b[:len(b)-1]) {
			t.Errorf("%d bytes of padding: with a byte missing it is a probe", padding)
		}
		spoilt := bytes.Clone(b)
		spoilt[ProbeLen+rng.IntN(padding)] ^= 1
		if _, err := ParseProbe(spoilt); err != ErrChecksum {
			t.Errorf("%d bytes of padding, one of them wrong: %v", padding, err)
		}
		if _, err := ReplyProbe(b); err != nil {
			t.Fatal(err)
		}
		p.Kind = ProbeReply
		if got, err := ParseProbe(b); err != nil || got != p || !udpValid(even(b)) {
			t.Errorf("the reply of %+v is %+v, %v", p, got, err)
		}
	}
	p := request()
	for _, padding := range []int{-1, MaxProbeLen - ProbeLen + 1, 1 << 40} {
		p.Padding = padding
		if b, err := AppendProbe([]byte{9}, p); err != ErrTooLong || len(b) != 1 {
			t.Errorf("%d bytes of padding: %d bytes, %v", padding, len(b), err)
		}
	}
}

// even adds the byte 0 that the checksum counts behind an odd length.
func even(b []byte) []byte { return append(bytes.Clone(b), make([]byte, len(b)%2)...) }

// tooBig is what a router sends about a packet, of which it quotes the beginning, that
// a link of an MTU does not take.
func tooBig(packet []byte, mtu uint16, quote int) []byte {
	return errorPacket(icmpUnreachable, icmpTooBig, mtu, packet[:min(quote, len(packet))])
}

func TestProbeTooBig(t *testing.T) {
	p := request()
	p.Padding = 1428
	inner := probe(t, p)
	h, err := NewIPIP(origin, target)
	if err != nil {
		t.Fatal(err)
	}
	outer := append(make([]byte, Overhead), inner...)
	if err := h.Encapsulate(outer, 1); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		packet []byte
		quote  int
		mtu    int
		err    error
	}{
		"outer, all":        {outer, 548, 1380, nil},
		"outer, token":      {outer, 20 + 44, 1380, nil},
		"outer, RFC 792":    {outer, 28, 0, ErrNotProbe},
		"inner, all":        {inner, 548, 1400, nil},
		"inner, no token":   {inner, 43, 0, ErrNotProbe},
		"another's packet":  {unhex(goldenInner), 548, 0, ErrNotProbe},
		"nothing is quoted": {inner, 0, 0, ErrNotProbe},
	} {
		token, mtu, err := ProbeTooBig(tooBig(c.packet, 1400, c.quote))
		if err != c.err || mtu != c.mtu || err == nil && token != p.Token {
			t.Errorf("%s: token %x, MTU %d, %v; want %d, %v", name, token, mtu, err, c.mtu, c.err)
		}
	}
	b := tooBig(inner, 1400, 548)
	b[30] ^= 1
	if _, _, err := ProbeTooBig(b); err != ErrChecksum {
		t.Errorf("with a wrong checksum: %v", err)
	}
	b = tooBig(inner, 1400, 548)
	b[21] = icmpHost
	if _, _, err := ProbeTooBig(b); err != ErrNotProbe {
		t.Errorf("host unreachable: %v", err)
	}
	if _, _, err := ProbeTooBig(inner); err != ErrNotProbe {
		t.Errorf("a probe itself: %v", err)
	}
}

func FuzzProbeTooBig(f *testing.F) {
	b, _ := AppendProbe(nil, Probe{Kind: Boomerang, Token: 3, Origin: origin, Target: origin, Padding: 90})
	f.Add(tooBig(b, 1400, 548))
	f.Add(tooBig(unhex(goldenInner), 0, 28))
	six, _ := AppendProbe(nil, Probe{Kind: Boomerang, Token: 3, Origin: origin6, Target: origin6, Padding: 90})
	f.Add(tooBig6(six, 1400, 1232))
	f.Add(tooBig6(append(unhex(golden6in6), six...), 1400, 1232))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		_, mtu, err := ProbeTooBig(b)
		if !bytes.Equal(b, before) || mtu < 0 || mtu > 0xffff || err != nil && mtu != 0 {
			t.Fatalf("%x: MTU %d, %v", before, mtu, err)
		}
	})
}
