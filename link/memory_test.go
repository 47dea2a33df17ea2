package link

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

func buffers(n, size int) ([][]byte, []int) {
	bufs := make([][]byte, n)
	for i := range bufs {
		bufs[i] = make([]byte, size)
	}
	return bufs, make([]int, n)
}

// TestMemory_carriesBytes sends packets of random sizes and compares them one
// by one, with different headroom on both sides.
func TestMemory_carriesBytes(t *testing.T) {
	const mtu, headIn, headOut = 200, 7, 30
	rng := rand.New(rand.NewPCG(1, 2))
	a, b := NewPair(mtu, 64)
	bufs, sizes := buffers(8, headOut+mtu)
	for round := range 200 {
		var want [][]byte
		for range 1 + rng.IntN(20) {
			p := make([]byte, headIn+1+rng.IntN(mtu))
			for i := range p {
				p[i] = byte(rng.Uint32())
			}
			want = append(want, p)
		}
		if n, err := a.Write(want, headIn); n != len(want) || err != nil {
			t.Fatalf("round %d: Write = %d, %v, want %d", round, n, err, len(want))
		}
		var sent [][]byte
		for _, p := range want {
			sent = append(sent, bytes.Clone(p[headIn:]))
			clear(p) // Write must not retain it
		}
		for len(sent) > 0 {
			n, err := b.Read(bufs, sizes, headOut)
			if err != nil || n != min(len(bufs), len(sent)) {
				t.Fatalf("round %d: Read = %d, %v with %d waiting", round, n, err, len(sent))
			}
			for i := range n {
				if got := bufs[i][headOut : headOut+sizes[i]]; !bytes.Equal(got, sent[i]) {
					t.Fatalf("round %d: read % x, want % x", round, got, sent[i])
				}
			}
			sent = sent[n:]
		}
	}
	if d := a.Drops() + b.Drops(); d != 0 {
		t.Errorf("%d drops, want 0", d)
	}
}

func TestMemory_dropsAndCounts(t *testing.T) {
	packet := func(size int) []byte { return make([]byte, size) }
	tests := []struct {
		name     string
		write    [][]byte
		offset   int
		accepted int
	}{
		{"fits exactly", [][]byte{packet(100)}, 0, 1},
		{"over the MTU", [][]byte{packet(101), packet(100)}, 0, 1},
		{"headroom is not counted", [][]byte{packet(120)}, 20, 1},
		{"empty", [][]byte{packet(20), packet(3)}, 20, 0},
		{"queue full", [][]byte{packet(1), packet(2), packet(3), packet(4), packet(5)}, 0, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := NewPair(100, 4)
			n, err := a.Write(tt.write, tt.offset)
			if n != tt.accepted || err != nil {
				t.Errorf("Write = %d, %v, want %d", n, err, tt.accepted)
			}
			if got, want := a.Drops(), uint64(len(tt.write)-tt.accepted); got != want {
				t.Errorf("Drops = %d, want %d", got, want)
			}
			if b.Drops() != 0 {
				t.Errorf("the other end counts %d drops", b.Drops())
			}
		})
	}
}

func TestMemory_dropsWhatTheReaderHasNoRoomFor(t *testing.T) {
	a, b := NewPair(100, 0)
	a.Write([][]byte{make([]byte, 60), {42}}, 0)
	bufs, sizes := buffers(2, 50)
	n, err := b.Read(bufs, sizes, 0)
	if n != 1 || err != nil || sizes[0] != 1 || bufs[0][0] != 42 {
		t.Errorf("Read = %d, %v, sizes %v, want the second packet only", n, err, sizes)
	}
	if a.Drops() != 1 {
		t.Errorf("Drops = %d, want 1", a.Drops())
	}
}

func TestMemory_defaults(t *testing.T) {
	a, b := NewPair(0, 0)
	if a.MTU() != DefaultMTU || b.MTU() != DefaultMTU {
		t.Errorf("MTU = %d and %d, want %d", a.MTU(), b.MTU(), DefaultMTU)
	}
	for range DefaultCapacity + 5 {
		a.Write([][]byte{{1}}, 0)
	}
	if a.Drops() != 5 {
		t.Errorf("Drops = %d, want 5", a.Drops())
	}
}

func TestMemory_close(t *testing.T) {
	a, b := NewPair(0, 0)
	a.Write([][]byte{{1}, {2}}, 0)
	for range 2 {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	bufs, sizes := buffers(1, 100)
	if n, err := b.Read(bufs, sizes, 0); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read after Close = %d, %v", n, err)
	}
	if n, err := b.Write([][]byte{{1}}, 0); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write after Close = %d, %v", n, err)
	}
	if n, err := a.Write([][]byte{{1}}, 0); n != 0 || err != nil {
		t.Errorf("Write to a closed peer = %d, %v, want a silent drop", n, err)
	}
	if a.Drops() != 3 {
		t.Errorf("Drops = %d, want 2 in the queue and 1 after", a.Drops())
	}
}

func TestMemory_closeUnblocksEveryRead(t *testing.T) {
	a, _ := NewPair(0, 0)
	const readers = 3
	done := make(chan error, readers)
	for range readers {
		go func() {
			bufs, sizes := buffers(1, 100)
			_, err := a.Read(bufs, sizes, 0)
			done <- err
		}()
	}
	time.Sleep(10 * time.Millisecond) // let them block; the test holds either way
	a.Close()
	for range readers {
		select {
		case err := <-done:
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("Read = %v, want net.ErrClosed", err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("Read still blocks after Close")
		}
	}
}

// TestMemory_batchWakesEveryReader has readers of one packet wait for a batch.
func TestMemory_batchWakesEveryReader(t *testing.T) {
	const readers = 4
	a, b := NewPair(0, 0)
	defer b.Close()
	done := make(chan error, readers)
	for range readers {
		go func() {
			bufs, sizes := buffers(1, 100)
			_, err := b.Read(bufs, sizes, 0)
			done <- err
		}()
	}
	time.Sleep(10 * time.Millisecond) // let them block; the test holds either way
	batch, _ := buffers(readers, 10)
	a.Write(batch, 0)
	for i := range readers {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%d of %d readers woke", i, readers)
		}
	}
}

// TestMemory_concurrent has several writers and readers on both ends at once:
// every packet arrives once or is counted, and each writer's stay in order at
// a single reader.
func TestMemory_concurrent(t *testing.T) {
	for _, readers := range []int{1, 3} {
		const writers, each = 4, 5000
		a, b := NewPair(0, 64)
		var seen [writers][each]int
		var mu sync.Mutex
		var reading, writing sync.WaitGroup
		read := make(chan struct{}, 1) // that something was
		for range readers {
			reading.Go(func() {
				bufs, sizes := buffers(16, 100)
				last := [writers]int{-1, -1, -1, -1}
				for {
					n, err := b.Read(bufs, sizes, 4)
					if err != nil {
						return
					}
					mu.Lock()
					for _, p := range bufs[:n] {
						w, i := int(p[4]), int(binary.BigEndian.Uint32(p[5:]))
						seen[w][i]++
						if i <= last[w] {
							t.Errorf("writer %d: packet %d after %d", w, i, last[w])
						}
						last[w] = i
					}
					mu.Unlock()
					select {
					case read <- struct{}{}:
					default:
					}
				}
			})
		}
		for w := range writers {
			writing.Go(func() {
				p := make([]byte, 5)
				for i := range each {
					p[0] = byte(w)
					binary.BigEndian.PutUint32(p[1:], uint32(i))
					a.Write([][]byte{p}, 0)
				}
			})
		}
		writing.Wait()
		<-read // what waits when b is closed is gone
		b.Close()
		reading.Wait()
		arrived := uint64(0)
		for w := range seen {
			for i, n := range seen[w] {
				if n > 1 {
					t.Errorf("packet %d of writer %d arrived %d times", i, w, n)
				}
				arrived += uint64(n)
			}
		}
		if got := arrived + a.Drops(); got != writers*each {
			t.Errorf("%d readers: %d arrived and %d dropped of %d", readers, arrived, a.Drops(), writers*each)
		}
		if arrived == 0 {
			t.Errorf("%d readers: nothing arrived", readers)
		}
	}
}

func TestMemory_allocatesNothing(t *testing.T) {
	a, b := NewPair(0, 64)
	out, _ := buffers(32, 1500)
	in, sizes := buffers(32, 1500)
	allocs := testing.AllocsPerRun(100, func() {
		a.Write(out, 0)
		b.Read(in, sizes, 0)
	})
	if allocs != 0 {
		t.Errorf("%v allocations for a batch, want 0", allocs)
	}
}

func BenchmarkMemory(b *testing.B) {
	near, far := NewPair(0, 64)
	out, _ := buffers(32, 1500)
	in, sizes := buffers(32, 1500)
	for b.Loop() {
		near.Write(out, 0)
		far.Read(in, sizes, 0)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/32, "ns/packet")
}
