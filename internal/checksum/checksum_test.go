package checksum

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// obvious is RFC 1071 §4.1, word by word.
func obvious(b []byte, initial uint64) uint16 {
	sum := uint64(Fold(initial))
	for i := 0; i < len(b); i += 2 {
		word := uint64(b[i]) << 8
		if i+1 < len(b) {
			word |= uint64(b[i+1])
		}
		sum += word
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

func TestFold_addsCarries(t *testing.T) {
	for sum, want := range map[uint64]uint16{
		0: 0, 0xffff: 0xffff, 0x10000: 1, 0x1ffff: 1, 0xffff_0000: 0xffff,
		0xffff_ffff_ffff_ffff: 0xffff, 1 << 63: 1 << 15, 0xffff_fffe_0000_0001: 0xffff,
	} {
		if got := Fold(sum); got != want {
			t.Errorf("%x becomes %x, want %x", sum, got, want)
		}
	}
}

func FuzzSum(f *testing.F) {
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), uint64(1), 3)
	f.Add([]byte(nil), uint64(0xffff_ffff_ffff_ffff), 0)
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 80 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32()) | byte(n%2)*0xff
		}
		f.Add(b, rng.Uint64(), n/2)
	}
	f.Fuzz(func(t *testing.T, b []byte, initial uint64, cut int) {
		want := obvious(b, initial)
		if got := Fold(Sum(b, initial)); got != want {
			t.Errorf("%x from %x: %x, want %x", b, initial, got, want)
		}
		cut = min(max(cut, 0), len(b)) &^ 1
		if got := Fold(Sum(b[cut:], Sum(b[:cut], initial))); got != want {
			t.Errorf("%x from %x, cut at %d: %x, want %x", b, initial, cut, got, want)
		}
	})
}

func BenchmarkSum(b *testing.B) {
	for _, n := range []int{20, 1460, 65535} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			buf := make([]byte, n)
			binary.BigEndian.PutUint64(buf, 0x123456789)
			b.SetBytes(int64(n))
			for b.Loop() {
				Sum(buf, 0)
			}
		})
	}
}
