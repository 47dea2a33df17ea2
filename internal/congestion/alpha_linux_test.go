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
	_                                  [5]uint32
	Una, Nxt, NowDelivered, NowCE      uint32
	Cwnd, Reduced, Wrong               uint32
}

func (w *window) step() step {
	return step{Alpha: w.alpha, End: w.end, Delivered: w.delivered, DeliveredCE: w.deliveredCE}
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
		s := w.step()
		s.Una, s.Nxt, s.NowDelivered, s.NowCE, s.Cwnd = una, nxt, delivered, ce, cwnd
		got := run(s)
		w.acknowledge(una, nxt, delivered, ce)
		want := w.step()
		want.Una, want.Nxt, want.NowDelivered, want.NowCE, want.Cwnd, want.Reduced = una, nxt, delivered, ce, cwnd, w.reduced(cwnd)
		if cwnd > 1<<25 && cwnd != math.MaxInt32 {
			want.Wrong = 1
		}
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
		w := window{uint32(rng.IntN(whole + 1)), rng.Uint32(), rng.Uint32(), rng.Uint32()}
		check(&w, rng.Uint32(), rng.Uint32(), w.delivered+rng.Uint32()>>rng.IntN(32), w.deliveredCE+rng.Uint32()>>rng.IntN(32), rng.Uint32()>>rng.IntN(32))
	}
	w := window{alpha: whole}
	check(&w, 0, 0, 0, 0, math.MaxInt32)
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
