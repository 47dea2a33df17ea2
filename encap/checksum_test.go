package encap

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// slowChecksum is RFC 1071 §1 word for word: the complement of the one's
// complement sum of the 16-bit words, the carry added back at every step.
func slowChecksum(header []byte) uint16 {
	s := uint32(0)
	for i := 0; i < len(header); i += 2 {
		if i == 10 {
			continue // the field itself
		}
		s += uint32(header[i])<<8 | uint32(header[i+1])
		if s > 0xffff {
			s -= 0xffff
		}
	}
	return ^uint16(s)
}

func TestSum_matchesObviousOne(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20000 {
		h := make([]byte, 20+4*rng.IntN(11))
		for i := range h {
			h[i] = byte(rng.Uint32()) | byte(rng.IntN(2)*255) // many 0xff: many carries
		}
		h[0] = 0x45
		h[10], h[11] = 0, 0
		got, want := ^fold(sum(h)), slowChecksum(h)
		if got != want {
			t.Fatalf("seed %d: checksum of %x = %04x, want %04x", seed, h, got, want)
		}
		binary.BigEndian.PutUint16(h[10:], want)
		if !valid(h) {
			t.Fatalf("seed %d: %x is valid", seed, h)
		}
		h[12] ^= 1 << rng.IntN(8)
		if valid(h) {
			t.Fatalf("seed %d: %x has a flipped bit and passes", seed, h)
		}
	}
}

// RFC 1624 §4 works this example; RFC 1141's equation gets it wrong.
func TestUpdate_RFC1624Example(t *testing.T) {
	if got := update(0xdd2f, 0x5555, 0x3285); got != 0x0000 {
		t.Errorf("update = %04x, want 0000", got)
	}
}

func TestUpdate_matchesFullComputation(t *testing.T) {
	h := []byte{0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 2, 10, 3, 1, 3}
	for id := range 1 << 16 { // walks the checksum through every value
		binary.BigEndian.PutUint16(h[4:], uint16(id))
		for from := range byte(4) {
			for to := range byte(4) {
				h[1] = from
				before := slowChecksum(h)
				h[1] = to
				got := update(before, 0x4500|uint16(from), 0x4500|uint16(to))
				if want := slowChecksum(h); got != want {
					t.Fatalf("id %04x, %d to %d: %04x, want %04x", id, from, to, got, want)
				}
			}
		}
	}
}
