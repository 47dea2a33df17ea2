package encap

import (
	"bytes"
	"crypto/aes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var startOfTime = time.Unix(1_800_000_000, 123)

func key(id uint8) UDPKey {
	k := UDPKey{ID: id}
	for i := range k.Secret {
		k.Secret[i] = id + byte(i)
	}
	return k
}

func newSealer(t testing.TB, id uint8) *Sealer {
	t.Helper()
	s, err := NewSealer(key(id), "a", "b", startOfTime, [3]byte{0xaa, 0xbb, 0xcc})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newOpener(t testing.TB, ids ...uint8) *Opener {
	t.Helper()
	o, err := NewOpener(key(ids[0]), "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(ids); n > 1 {
		former := key(ids[n-2])
		if err := o.SetKeys(key(ids[n-1]), former); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// sealed returns a datagram's payload with a MAC.
func sealed(t testing.TB, s *Sealer, h UDPHeader, inner []byte) []byte {
	t.Helper()
	b := append(bytes.Repeat([]byte{0xee}, UDPSealedOverhead), inner...)
	if err := s.Seal(b, h); err != nil {
		t.Fatal(err)
	}
	return b
}

// slowGMAC is NIST SP 800-38D §7.1 for additional data alone, bit by bit.
func slowGMAC(key, nonce, data []byte) []byte {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	var h, y, pad [16]byte
	block.Encrypt(h[:], h[:])
	multiply := func(in []byte) { // y = (y ^ in) * h, in (§6.3)
		var x [16]byte
		copy(x[:], in)
		for i := range x {
			x[i] ^= y[i]
		}
		v, z := h, [16]byte{}
		for bit := range 128 {
			if x[bit/8]>>(7-bit%8)&1 != 0 {
				for i := range z {
					z[i] ^= v[i]
				}
			}
			lost := v[15] & 1
			for i := 15; i > 0; i-- {
				v[i] = v[i]>>1 | v[i-1]<<7
			}
			v[0] = v[0]>>1 ^ lost*0xe1
		}
		y = z
	}
	for rest := data; len(rest) > 0; rest = rest[min(16, len(rest)):] {
		multiply(rest[:min(16, len(rest))])
	}
	multiply(binary.BigEndian.AppendUint64(nil, uint64(len(data))*8)) // and 64 bits of 0
	block.Encrypt(pad[:], append(bytes.Clone(nonce), 0, 0, 0, 1))
	for i := range y {
		y[i] ^= pad[i]
	}
	return y[:]
}

// slowKey is RFC 5869 for one block of SHA-256 without a salt.
func slowKey(secret []byte, info string) []byte {
	mac := func(key []byte, data string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(data))
		return m.Sum(nil)
	}
	return mac(mac(make([]byte, 32), string(secret)), info+"\x01")
}

func TestSeal_golden(t *testing.T) {
	const want = "17" + "07" + "1234" + "deadbeef" + "09000002" +
		"05" + "aabbcc" + "18fae27693b4007b" + "4c107008199890103124c6ec111265c0" + goldenInner
	s := newSealer(t, 5)
	if got := hex.EncodeToString(sealed(t, s, feedbackHeader, unhex(goldenInner))); got != want {
		t.Errorf("\ngot  %s\nwant %s", got, want)
	}
}

func TestSeal_isGMACOfEverything(t *testing.T) {
	k, s := key(5), newSealer(t, 5)
	gmacKey := slowKey(k.Secret[:], "weft udp 1\x01ab")
	r := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		inner := inner6(r.IntN(300))
		for i := range inner[40:] {
			inner[40+i] = byte(r.Uint32())
		}
		b := sealed(t, s, UDPHeader{Number: r.Uint32()}, inner)
		got := bytes.Clone(b[24:40])
		clear(b[24:40])
		if want := slowGMAC(gmacKey, b[12:24], b); !bytes.Equal(got, want) {
			t.Fatalf("tag %x, want %x", got, want)
		}
	}
}

func TestOpen_returnsWhatWasSealed(t *testing.T) {
	s, o := newSealer(t, 1), newOpener(t, 1)
	for n := range 100 {
		inner := inner6(n)
		b := sealed(t, s, feedbackHeader, inner)
		before := bytes.Clone(b)
		h, got, err := o.Open(b)
		if err != nil || h != feedbackHeader || !bytes.Equal(got, inner) || &got[0] != &b[UDPSealedOverhead] || !bytes.Equal(b, before) {
			t.Fatalf("%d bytes: %+v %x, %v", n, h, got, err)
		}
	}
}

func TestOpen_refusesEveryFlippedBit(t *testing.T) {
	s, o := newSealer(t, 1), newOpener(t, 1)
	b := sealed(t, s, feedbackHeader, unhex(goldenInner))
	for bit := range len(b) * 8 {
		b[bit/8] ^= 1 << (bit % 8)
		before := bytes.Clone(b)
		if _, inner, err := o.Open(b); err == nil || inner != nil {
			t.Errorf("bit %d of byte %d flipped: accepted", bit%8, bit/8)
		}
		if !bytes.Equal(b, before) {
			t.Errorf("bit %d of byte %d flipped: Open has changed it", bit%8, bit/8)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	if _, _, err := o.Open(b); err != nil {
		t.Errorf("none flipped, after all the forgeries: %v", err)
	}
}

func TestOpen_refuses(t *testing.T) {
	good := func() []byte { return sealed(t, newSealer(t, 1), plainHeader, inner6(8)) }
	swapped, err := NewSealer(key(1), "b", "a", startOfTime, [3]byte{})
	if err != nil {
		t.Fatal(err)
	}
	otherSecret := key(2)
	otherSecret.ID = 1
	stranger, err := NewSealer(otherSecret, "a", "b", startOfTime, [3]byte{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"nothing", nil, ErrTruncated},
		{"a header alone", good()[:UDPSealedOverhead], ErrTruncated},
		{"part of a header", good()[:UDPSealedOverhead-1], ErrTruncated},
		{"a shortened packet", good()[:UDPSealedOverhead+40], ErrUDPForged},
		{"no MAC", plain(plainHeader, inner6(8)), ErrUDPPlain},
		{"another key's ID", sealed(t, newSealer(t, 2), plainHeader, inner6(8)), ErrUDPKey},
		{"another secret", sealed(t, stranger, plainHeader, inner6(8)), ErrUDPForged},
		{"its own reflection", sealed(t, swapped, plainHeader, inner6(8)), ErrUDPForged},
		{"a genuine MAC of no packet", sealed(t, newSealer(t, 1), plainHeader, []byte{0}), ErrTruncated},
		{"a genuine MAC of two packets", sealed(t, newSealer(t, 1), plainHeader, append(inner6(8), 0)), ErrUDPTrailing},
	} {
		if h, inner, err := newOpener(t, 1).Open(c.b); err != c.want || inner != nil || h != (UDPHeader{}) {
			t.Errorf("%s: %+v %x, %v; want %v and nothing else", c.name, h, inner, err, c.want)
		}
	}
}

func TestOpen_takesEverythingOnceInAnyOrder(t *testing.T) {
	const seed = 11
	s, o := newSealer(t, 1), newOpener(t, 1)
	var all [][]byte
	for n := range 2000 {
		all = append(all, sealed(t, s, UDPHeader{Number: uint32(n)}, inner6(0)))
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, want := range []error{nil, ErrUDPReplay} {
		for i, b := range all {
			if _, _, err := o.Open(b); err != want {
				t.Fatalf("seed %d: datagram %d: %v, want %v", seed, i, err, want)
			}
		}
	}
}

func TestSealer_aRestartComesAboveEverythingBefore(t *testing.T) {
	o := newOpener(t, 1)
	var recorded [][]byte
	s := newSealer(t, 1)
	for range 100 {
		recorded = append(recorded, sealed(t, s, plainHeader, inner6(0)))
	}
	if _, _, err := o.Open(bytes.Clone(recorded[0])); err != nil {
		t.Fatal(err)
	}
	again, err := NewSealer(key(1), "a", "b", startOfTime.Add(time.Millisecond), [3]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := o.Open(sealed(t, again, plainHeader, inner6(0))); err != nil {
		t.Errorf("after the restart: %v", err)
	}
	for i, b := range recorded {
		if _, _, err := o.Open(b); err != ErrUDPReplay {
			t.Errorf("datagram %d from before the restart: %v", i, err)
		}
	}
}

func TestSealer_neverUsesANonceTwice(t *testing.T) {
	s := newSealer(t, 1)
	seen := make(map[string]bool)
	for range 3 {
		b := sealed(t, s, plainHeader, inner6(0))
		if nonce := string(b[12:24]); seen[nonce] {
			t.Errorf("nonce %x again", nonce)
		} else {
			seen[nonce] = true
		}
	}
	s.counter = math.MaxUint64 - 1
	last := sealed(t, s, plainHeader, inner6(0))
	b := append(make([]byte, UDPSealedOverhead), inner6(0)...)
	if err := s.Seal(b, plainHeader); err != ErrUDPCounter {
		t.Errorf("after the last counter: %v", err)
	}
	if _, _, err := newOpener(t, 1).Open(last); err != nil {
		t.Errorf("the last: %v", err)
	}
	if err := s.Seal(b[:UDPSealedOverhead], plainHeader); err != ErrTruncated {
		t.Errorf("no inner packet: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	genuine := sealed(f, newSealer(f, 1), feedbackHeader, unhex(goldenInner))
	f.Add(genuine)
	f.Add(genuine[:UDPSealedOverhead+1])
	f.Add(plain(plainHeader, inner6(8)))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		_, inner, err := newOpener(t, 1).Open(b)
		if !bytes.Equal(b, before) {
			t.Fatalf("%x became %x", before, b)
		}
		if (err == nil) != bytes.Equal(b, genuine) || (inner == nil) != (err != nil) {
			t.Fatalf("%x: %x, %v", b, inner, err)
		}
	})
}

func TestSeal_allocatesNothing(t *testing.T) {
	s, o := newSealer(t, 1), newOpener(t, 1)
	b := append(make([]byte, UDPSealedOverhead), inner6(1420)...)
	if n := testing.AllocsPerRun(100, func() {
		if err := s.Seal(b, plainHeader); err != nil {
			t.Fatal(err)
		}
		if _, _, err := o.Open(b); err != nil {
			t.Fatal(err)
		}
		b[50] ^= 1
		if _, _, err := o.Open(b); err != ErrUDPForged {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSeal(b *testing.B) {
	s := newSealer(b, 1)
	p := append(make([]byte, UDPSealedOverhead), inner6(1420)...)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		if err := s.Seal(p, plainHeader); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSealAndOpen(b *testing.B) {
	s, o := newSealer(b, 1), newOpener(b, 1)
	p := append(make([]byte, UDPSealedOverhead), inner6(1420)...)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		if err := s.Seal(p, plainHeader); err != nil {
			b.Fatal(err)
		}
		if _, _, err := o.Open(p); err != nil {
			b.Fatal(err)
		}
	}
}

// Over hundreds of starts with one secret no nonce comes twice, whatever the clock does, at
// most 10^9 datagrams a second provided. While the clock goes on, counters alone keep starts
// apart, though all have the same salt; where it is set back, or stands still, salts do.
func TestSealer_noNonceTwiceAcrossStarts(t *testing.T) {
	forAllCiphers(t, func(t *testing.T, c UDPCipher) {
		for _, backwards := range []bool{false, true} {
			const seed = 21
			r := rand.New(rand.NewPCG(seed, 0))
			seen, now, last := make(map[[nonceSize]byte]bool), startOfTime, uint64(0)
			for start := range 300 {
				var salt [3]byte
				if backwards {
					salt = [3]byte{byte(start >> 8), byte(start), 1}
				}
				s, err := NewSealer(keyFor(c, 1), "a", "b", now, salt)
				if err != nil {
					t.Fatal(err)
				}
				n := 1 + r.IntN(50)
				for range n {
					b := inMiddle(s, inner6(0), 0)
					if err := s.Seal(b, plainHeader); err != nil {
						t.Fatal(err)
					}
					nonce := [nonceSize]byte(b[keyAt:])
					if seen[nonce] {
						t.Fatalf("seed %d: nonce %x a second time, in start %d", seed, nonce, start)
					}
					seen[nonce] = true
					counter := binary.BigEndian.Uint64(nonce[4:])
					if !backwards && counter <= last {
						t.Fatalf("seed %d: counter %d in start %d, after %d", seed, counter, start, last)
					}
					last = counter
				}
				now = now.Add(time.Duration(n)) // as fast as can be
				if backwards && start%3 == 0 {
					now = startOfTime.Add(time.Duration(r.IntN(3)))
				}
			}
		}
	})
}
