package encap

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// slowWindow is what replayWindow does, as a set of all that was seen.
type slowWindow struct {
	seen    map[uint64]bool
	highest uint64
}

func (w *slowWindow) accept(n uint64) bool {
	if w.seen[n] || n < w.highest && w.highest-n >= 8128 {
		return false
	}
	w.seen[n] = true
	w.highest = max(w.highest, n)
	return true
}

// replayCheck compares the two over a series of numbers.
func replayCheck(t *testing.T, numbers func(yield func(uint64) bool)) {
	t.Helper()
	var fast replayWindow
	slow := slowWindow{seen: make(map[uint64]bool)}
	i := 0
	for n := range numbers {
		if got, want := fast.accept(n), slow.accept(n); got != want {
			t.Fatalf("number %d, %d: accepted %v, want %v; highest was %d", i, n, got, want, slow.highest)
		}
		i++
	}
}

func TestReplayWindow_agreesWithASet(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		t.Logf("seed %d", seed)
		at := r.Uint64() >> (seed * 3)
		replayCheck(t, func(yield func(uint64) bool) {
			for range 20_000 {
				switch r.IntN(200) {
				case 0:
					at += r.Uint64N(20_000) // across the whole window, sometimes
				case 1:
					at += 8192
				default:
					at += r.Uint64N(3)
				}
				if !yield(at - min(at, r.Uint64N(1<<r.IntN(15)))) {
					return
				}
			}
		})
	}
}

func TestReplayWindow_edges(t *testing.T) {
	for _, c := range []struct {
		name    string
		numbers []uint64
		want    bool // of the last
	}{
		{"the first is 0", []uint64{0}, true},
		{"0 twice", []uint64{0, 0}, false},
		{"the first is large", []uint64{math.MaxUint64}, true},
		{"the largest twice", []uint64{math.MaxUint64, math.MaxUint64}, false},
		{"just inside", []uint64{10_000, 10_000 - 8127}, true},
		{"just outside", []uint64{10_000, 10_000 - 8128}, false},
		{"inside, before anything was", []uint64{8127, 0}, true},
		{"outside at the start", []uint64{8128, 0}, false},
		{"same bit, next lap", []uint64{5, 5 + 8192}, true},
		{"same bit, a lap of 2^32", []uint64{5, 5 + 1<<32, 5 + 1<<32 - 1}, true},
		{"far ahead, then back", []uint64{5, 1 << 40, 5}, false},
	} {
		var w replayWindow
		var got bool
		for _, n := range c.numbers {
			got = w.accept(n)
		}
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func FuzzReplayWindow(f *testing.F) {
	f.Add(uint64(0), []byte{0, 1, 0, 0, 0xff, 0xff, 0x80, 0})
	f.Add(uint64(math.MaxUint64-100), []byte{0, 1, 0, 0, 0xff, 0xff, 0x80, 0})
	f.Add(uint64(1)<<32, []byte{0x20, 0, 0xe0, 0x01, 0x1f, 0xc0})
	f.Fuzz(func(t *testing.T, at uint64, steps []byte) {
		replayCheck(t, func(yield func(uint64) bool) {
			for ; len(steps) >= 2; steps = steps[2:] {
				at += uint64(int64(int16(binary.BigEndian.Uint16(steps))))
				if !yield(at) {
					return
				}
			}
		})
	})
}
