package congestion

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package congestion -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb alpha bpf/alpha.c -- -O2 -g -Wall -Werror -mcpu=v3 -idirafter /usr/include/x86_64-linux-gnu

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// step is the packet of bpf/alpha.c.
type step struct {
	Alpha, End, Delivered, DeliveredCE uint32 // before, and after
	_                                  [2]uint32
	Before                             uint32
	_                                  uint32
	Set, Threshold                     uint32
	Una, Nxt, NowDelivered, NowCE      uint32
	Cwnd, Ssthresh                     uint32 // as the kernel has them, and as believed
	State, Reduced                     uint32
}

func (w *window) step() step {
	return step{Alpha: w.alpha, End: w.end, Delivered: w.delivered, DeliveredCE: w.deliveredCE, Before: w.before, Set: w.set, Threshold: w.threshold}
}

func alphaProgram(t *testing.T) func(step) step {
	t.Helper()
	kerneltest.NeedRoot(t)
	spec, err := loadAlpha()
	if err != nil {
		t.Fatal(err)
	}
	var o alphaObjects
	if err := kernel.Load(spec, &o, kernel.TCNeeds); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return func(s step) step {
		var in bytes.Buffer
		binary.Write(&in, binary.NativeEndian, s)
		opts := ebpf.RunOptions{Data: in.Bytes(), DataOut: make([]byte, in.Len())}
		if code, err := o.WeftAlpha.Run(&opts); err != nil || code != 0 {
			t.Fatalf("code %d, %v", code, err)
		}
		var out step
		if err := binary.Read(bytes.NewReader(opts.DataOut), binary.NativeEndian, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// The program computes what Go does, ACK for ACK: over whole connections, whose counters
// wrap, and over anything at all.
func TestAlpha_programLikeGo(t *testing.T) {
	run := alphaProgram(t)
	rng := rand.New(rand.NewPCG(8257, 0))
	check := func(w *window, una, nxt, delivered, ce, cwnd uint32) {
		t.Helper()
		w.set, w.threshold = number(rng), number(rng)
		s := w.step()
		s.Una, s.Nxt, s.NowDelivered, s.NowCE, s.Cwnd = una, nxt, delivered, ce, cwnd
		s.Ssthresh, s.State = number(rng), uint32(rng.IntN(5))
		got := run(s)
		want := s
		w.acknowledge(una, nxt, delivered, ce)
		want.Reduced = w.reduced(cwnd)
		want.Cwnd, want.Ssthresh = w.believe(cwnd, s.Ssthresh, s.State)
		want.Alpha, want.End, want.Delivered, want.DeliveredCE, want.Before = w.alpha, w.end, w.delivered, w.deliveredCE, w.before
		if got != want {
			t.Fatalf("%+v gives %+v, want %+v", s, got, want)
		}
	}
	windows := 0
	for range 40 {
		una, delivered, ce := rng.Uint32(), uint32(math.MaxUint32-rng.IntN(100)), uint32(math.MaxUint32-rng.IntN(20))
		w := window{alpha: whole, end: una, delivered: delivered, deliveredCE: ce}
		share := rng.Float64()
		for range 100 {
			n := uint32(1 + rng.IntN(3))
			delivered += n
			for range n {
				if rng.Float64() < share {
					ce++
				}
			}
			una += n * 1448
			before := w.end
			check(&w, una, una+uint32(rng.IntN(20))*1448, delivered, ce, uint32(rng.IntN(1000)))
			if w.end != before {
				windows++
			}
		}
	}
	if windows < 100 {
		t.Errorf("%d windows ended", windows)
	}
	for range 2000 {
		w := window{alpha: uint32(rng.IntN(whole + 1)), end: rng.Uint32(), delivered: rng.Uint32(), deliveredCE: rng.Uint32()}
		check(&w, rng.Uint32(), rng.Uint32(), w.delivered+rng.Uint32()>>rng.IntN(32), w.deliveredCE+rng.Uint32()>>rng.IntN(32), number(rng))
	}
}

// edges are numbers of packets that the kernel may take for a window or a threshold: what a
// program that was left out returns may be any.
var edges = []uint32{0, 1, 2, 3, 10, 11, 1 << 24, 1 << 25, 1<<25 + 1, infinite, math.MaxUint32}

func number(rng *rand.Rand) uint32 {
	if rng.IntN(2) == 0 {
		return edges[rng.IntN(len(edges))]
	}
	return rng.Uint32() >> rng.IntN(32)
}

// Whatever stands in the kernel's place for a window and a threshold, the window is at least
// a packet, by which the kernel divides, and not above the one that was set; a threshold is at
// least two packets, and that of a reduction is not above the window. What may be is kept.
func TestAlpha_believesOnlyWhatMayBe(t *testing.T) {
	run := alphaProgram(t)
	for _, set := range []uint32{0, 1, 2, 10, 1000, 1 << 24} {
		for state := uint32(0); state <= 4; state++ {
			for _, cwnd := range edges {
				for _, ssthresh := range edges {
					got := run(step{Alpha: whole / 2, End: 1, Set: set, Threshold: 500, State: state, Cwnd: cwnd, Ssthresh: ssthresh})
					if got.Cwnd < 1 || got.Cwnd > max(2, set) || got.Ssthresh < 2 || state >= cwr && got.Ssthresh > max(2, set) {
						t.Fatalf("state %d, set %d: a window of %d and a threshold of %d become %d and %d", state, set, cwnd, ssthresh, got.Cwnd, got.Ssthresh)
					}
				}
			}
		}
	}
	for _, c := range []struct{ state, cwnd, ssthresh, wantCwnd, wantSsthresh uint32 }{
		{0, 1000, infinite, 1000, infinite}, // slow start
		{0, 700, 1 << 24, 700, 1 << 24},     // an undo brings a threshold back
		{4, 1, 500, 1, 500},                 // a timeout
		{cwr, 1000, 750, 1000, 750},         // marks
		{cwr, 0, 0, 1000, 750},              // by half an alpha of a half
		{cwr, 1 << 24, 1 << 24, 1000, 750},
		{recovery, 1000, 1 << 24, 1000, 500}, // a loss halves
		{0, 1 << 24, 1, 1000, 750},
	} {
		got := run(step{Alpha: whole / 2, End: 1, Set: 1000, Threshold: 500, State: c.state, Cwnd: c.cwnd, Ssthresh: c.ssthresh})
		if got.Cwnd != c.wantCwnd || got.Ssthresh != c.wantSsthresh {
			t.Errorf("state %d: %d and %d become %d and %d, want %d and %d", c.state, c.cwnd, c.ssthresh, got.Cwnd, got.Ssthresh, c.wantCwnd, c.wantSsthresh)
		}
	}
}

// RFC 8257 §3.3: alpha comes to the share of marked packets, and without marks it goes to
// 0. From 1 on, as Linux begins, a reduction halves; at a share of a quarter it takes an
// eighth.
func TestAlpha_isTheShareOfMarks(t *testing.T) {
	for _, share := range []float64{0, 0.25, 0.5, 1} {
		w := window{alpha: whole}
		if got := w.reduced(1000); got != 500 {
			t.Errorf("at first 1000 packets become %d, want 500", got)
		}
		for i := uint32(1); i <= 200; i++ {
			w.acknowledge(i, i+1, i*100, uint32(float64(i*100)*share))
		}
		// Division drops at most 15 of 16 parts a window, 16 of them in balance.
		if got := float64(w.alpha) / whole; math.Abs(got-share) > 16./whole {
			t.Errorf("at a share of %v alpha is %v", share, got)
		}
		if got, want := w.reduced(1000), 1000*(1-share/2); math.Abs(float64(got)-want) > 9 {
			t.Errorf("at a share of %v 1000 packets become %d, want %v", share, got, want)
		}
	}
}
