package encap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func keyFor(c UDPCipher, id uint8) UDPKey {
	k := key(id)
	k.Cipher = c
	return k
}

// ends are a Sealer and the Opener of its datagrams.
func ends(t testing.TB, k UDPKey) (*Sealer, *Opener) {
	t.Helper()
	s, err := NewSealer(k, "a", "b", startOfTime, [3]byte{0xaa, 0xbb, 0xcc})
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewOpener(k, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	return s, o
}

// inMiddle returns a datagram with room for so many bytes behind it, all 0xee.
func inMiddle(s *Sealer, inner []byte, behind int) []byte {
	b := append(bytes.Repeat([]byte{0xee}, s.Overhead()), inner...)
	n := len(b)
	b = append(b, bytes.Repeat([]byte{0xee}, behind)...)
	return b[: n : n+behind]
}

func forAllCiphers(t *testing.T, f func(t *testing.T, c UDPCipher)) {
	for c := range udpCiphers {
		t.Run(c.String(), func(t *testing.T) { f(t, c) })
	}
}

// Wherever a datagram lies in its buffer, the bytes on the wire are those of Go's library,
// and what lies behind it stays.
func TestCipher_wire(t *testing.T) {
	forAllCiphers(t, func(t *testing.T, c UDPCipher) {
		if !c.Hides() {
			return // TestSeal_isGMACOfEverything
		}
		k := keyFor(c, 5)
		info := "weft hidden udp 1 " + c.String() + "\x01ab"
		aead, err := c.aead(slowKey(k.Secret[:], info))
		if err != nil {
			t.Fatal(err)
		}
		pair := slowKey(k.Secret[:], "pair of "+info)[:4]
		r := rand.New(rand.NewPCG(5, 5))
		s, o := ends(t, k)
		for i := range 300 {
			inner := inner6(r.IntN(300))
			behind := []int{0, 1, 15, 16, 17, 200}[i%6]
			b := inMiddle(s, inner, behind)
			if err := s.Seal(b, feedbackHeader); err != nil {
				t.Fatal(err)
			}
			want := aead.Seal(nil, b[12:24], inner, b[:12])
			if n := len(inner); !bytes.Equal(b[44:], want[:n]) || !bytes.Equal(b[24:40], want[n:]) || !bytes.Equal(b[40:44], pair) {
				t.Fatalf("%d bytes, %d behind: not what the library makes", len(inner), behind)
			}
			if b[0] != udpVersion<<4|udpSealed|udpPartial|udpFeedback|udpHidden {
				t.Fatalf("flags %x", b[0])
			}
			whole := b[:cap(b)]
			kept := bytes.Repeat([]byte{0xee}, behind)
			if !bytes.Equal(whole[len(b):], kept) {
				t.Fatalf("sealed: %x behind it", whole[len(b):])
			}
			h, got, err := o.Open(b)
			if err != nil || h != feedbackHeader || !bytes.Equal(got, inner) || &got[0] != &b[44] || !bytes.Equal(whole[len(b):], kept) {
				t.Fatalf("%d behind: %+v, %x, %v; then %x", behind, h, got, err, whole[len(b):])
			}
		}
	})
}

// NIST's test case 16 for GCM, and RFC 8439 §2.8.2.
func TestCipher_vectors(t *testing.T) {
	for _, c := range []struct {
		cipher                                            UDPCipher
		key, nonce, plain, additional, ciphertext, wanted string
	}{
		{UDPAESGCM, "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
			"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
			"feedfacedeadbeeffeedfacedeadbeefabaddad2",
			"522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
			"76fc6ece0f4e1768cddf8853bb2d551b"},
		{UDPChaCha20Poly1305, "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f", "070000004041424344454647",
			fmt.Sprintf("%x", "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it."),
			"50515253c0c1c2c3c4c5c6c7",
			"d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b6116",
			"1ae10b594f09e26a7e902ecbd0600691"},
	} {
		aead, err := c.cipher.aead(unhex(c.key))
		if err != nil {
			t.Fatal(err)
		}
		d := udpDirection{aead: aead}
		for _, behind := range []int{0, 16} {
			var scratch []byte
			tag := make([]byte, tagSize)
			plain := unhex(c.plain)
			b := slices.Grow(bytes.Clone(plain), behind)
			b = b[: len(plain) : len(plain)+behind]
			d.seal(unhex(c.nonce), b, unhex(c.additional), tag, &scratch)
			if !bytes.Equal(b, unhex(c.ciphertext)) || !bytes.Equal(tag, unhex(c.wanted)) {
				t.Errorf("%v, %d behind: %x, tag %x", c.cipher, behind, b, tag)
			}
			if !d.open(unhex(c.nonce), b, unhex(c.additional), tag, &scratch) || !bytes.Equal(b, plain) {
				t.Errorf("%v, %d behind: opened %x", c.cipher, behind, b)
			}
		}
	}
}

// No byte of the inner packet is on the wire, and the same packet never looks the same.
func TestCipher_hides(t *testing.T) {
	forAllCiphers(t, func(t *testing.T, c UDPCipher) {
		s, _ := ends(t, keyFor(c, 5))
		inner := append(inner6(0), bytes.Repeat([]byte("secret"), 100)...)
		binary.BigEndian.PutUint16(inner[4:], 600)
		one, two := inMiddle(s, inner, 0), inMiddle(s, inner, 0)
		if err := errors.Join(s.Seal(one, plainHeader), s.Seal(two, plainHeader)); err != nil {
			t.Fatal(err)
		}
		same := 0
		for i := s.Overhead(); i < len(one); i++ {
			if one[i] == two[i] {
				same++
			}
		}
		if hidden := !bytes.Contains(one, []byte("sec")) && same < len(inner)/10; hidden != c.Hides() {
			t.Errorf("hidden: %t; %d of %d bytes are the same", hidden, same, len(inner))
		}
		if _, ok := UDPInnerSource(one); ok == c.Hides() {
			t.Errorf("its inner source is known: %t", ok)
		}
	})
}

func TestCipher_refusesEveryFlippedBit(t *testing.T) {
	forAllCiphers(t, func(t *testing.T, c UDPCipher) {
		s, o := ends(t, keyFor(c, 5))
		b := inMiddle(s, unhex(goldenInner), 0)
		if err := s.Seal(b, feedbackHeader); err != nil {
			t.Fatal(err)
		}
		good := bytes.Clone(b)
		for bit := range len(b) * 8 {
			copy(b, good)
			b[bit/8] ^= 1 << (bit % 8)
			if _, inner, err := o.Open(b); err == nil || inner != nil {
				t.Errorf("bit %d of byte %d flipped: accepted", bit%8, bit/8)
			}
		}
		copy(b, good)
		if _, _, err := o.Open(b); err != nil {
			t.Errorf("none flipped, after all the forgeries: %v", err)
		}
		copy(b, good)
		if _, _, err := o.Open(b); err != ErrUDPReplay {
			t.Errorf("a second time: %v", err)
		}
		for n := range good {
			copy(b, good)
			if _, _, err := o.Open(b[:n:n]); err == nil {
				t.Errorf("cut to %d bytes: accepted", n)
			}
		}
	})
}

// A key with one cipher opens nothing of the same secret with another one, and says so
// where the form tells.
func TestCipher_isPartOfTheKey(t *testing.T) {
	for from := range udpCiphers {
		for to := range udpCiphers {
			s, _ := ends(t, keyFor(from, 5))
			_, o := ends(t, keyFor(to, 5))
			b := inMiddle(s, inner6(8), 0)
			if err := s.Seal(b, plainHeader); err != nil {
				t.Fatal(err)
			}
			want := error(nil)
			switch {
			case from.Hides() != to.Hides():
				want = ErrUDPCipher
			case from != to:
				want = ErrUDPForged
			}
			if _, _, err := o.Open(b); err != want {
				t.Errorf("%v opened as %v: %v, want %v", from, to, err, want)
			}
		}
	}
}

// During a change of keys both open, the cipher may be another one, and pairs tell them
// apart.
func TestCipher_changes(t *testing.T) {
	old, next := keyFor(UDPGMAC, 1), keyFor(UDPChaCha20Poly1305, 2)
	before, o := ends(t, old)
	after, _ := ends(t, next)
	if err := o.SetKeys(old, next); err != nil {
		t.Fatal(err)
	}
	for i, s := range []*Sealer{before, after, before, after} {
		b := inMiddle(s, inner6(8), 0)
		if err := s.Seal(b, plainHeader); err != nil {
			t.Fatal(err)
		}
		pair, hidden := UDPPair(b)
		want, err := next.Pair("a", "b")
		if hidden != (s == after) || hidden && pair != want || err != nil || want == 0 {
			t.Errorf("pair %x, %t; want %x, %v", pair, hidden, want, err)
		}
		if _, _, err := o.Open(b); err != nil {
			t.Errorf("datagram %d: %v", i, err)
		}
	}
	back, err := next.Pair("b", "a")
	if there, _ := next.Pair("a", "b"); err != nil || back == there {
		t.Errorf("both directions have pair %x", back)
	}
}

// A receiver that decrypts accepts what was sealed and nothing else.
func FuzzOpenHidden(f *testing.F) {
	var genuine [udpCiphers][]byte
	for c := UDPAESGCM; c < udpCiphers; c++ {
		s, _ := ends(f, keyFor(c, 1))
		b := inMiddle(s, unhex(goldenInner), 0)
		if err := s.Seal(b, feedbackHeader); err != nil {
			f.Fatal(err)
		}
		genuine[c] = b
		f.Add(b, uint8(c))
		f.Add(b[:UDPHiddenOverhead+1], uint8(c))
	}
	f.Fuzz(func(t *testing.T, b []byte, which uint8) {
		c := UDPAESGCM + UDPCipher(which)%(udpCiphers-UDPAESGCM)
		before := bytes.Clone(b)
		_, o := ends(t, keyFor(c, 1))
		_, inner, err := o.Open(b)
		if (err == nil) != bytes.Equal(before, genuine[c]) || (inner == nil) != (err != nil) {
			t.Fatalf("%x: %x, %v", before, inner, err)
		}
		UDPPair(before)
	})
}

func TestCipher_allocatesNothing(t *testing.T) {
	forAllCiphers(t, func(t *testing.T, c UDPCipher) {
		for _, behind := range []int{0, tagSize} {
			s, o := ends(t, keyFor(c, 1))
			inner := inner6(1420)
			b := inMiddle(s, inner, behind)
			if n := testing.AllocsPerRun(100, func() {
				copy(b[s.Overhead():], inner)
				if err := s.Seal(b, plainHeader); err != nil {
					t.Fatal(err)
				}
				if _, _, err := o.Open(b); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%d bytes behind: %v allocations", behind, n)
			}
		}
	})
}

func TestUDPCipher_text(t *testing.T) {
	for c := range udpCiphers {
		text, err := c.MarshalText()
		var got UDPCipher
		if err2 := got.UnmarshalText(text); err != nil || err2 != nil || got != c {
			t.Errorf("%v: %v, %v, %v", c, got, err, err2)
		}
	}
	var c UDPCipher
	for _, bad := range []string{"", "none", "GMAC", "cipher 3"} {
		if err := c.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is a cipher", bad)
		}
	}
	if _, err := NewOpener(keyFor(udpCiphers, 1), "a", "b"); err == nil {
		t.Error("a key with an unknown cipher is taken")
	}
}

func BenchmarkCipher(b *testing.B) {
	for c := range udpCiphers {
		for _, size := range []int{64, 1400, 8900} {
			b.Run(fmt.Sprintf("%v/%d", c, size), func(b *testing.B) {
				s, o := ends(b, keyFor(c, 5))
				inner := inner6(size - 40)
				buf := inMiddle(s, inner, tagSize)
				b.SetBytes(int64(size))
				for b.Loop() {
					copy(buf[s.Overhead():], inner)
					if s.Seal(buf, plainHeader) != nil {
						b.Fatal("not sealed")
					}
					if _, _, err := o.Open(buf); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
