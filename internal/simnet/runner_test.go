package simnet

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"weft/link"
	"weft/topology"
)

func receive(t *testing.T, d *link.Memory) []byte {
	t.Helper()
	bufs, sizes := [][]byte{make([]byte, 2000)}, make([]int, 1)
	n, err := d.Read(bufs, sizes, 0)
	if n != 1 || err != nil {
		t.Fatalf("Read = %d, %v", n, err)
	}
	return bufs[0][:sizes[0]]
}

// TestRunner_keepsModelTime sends a burst over a slow fabric. However late the
// timers are, no packet comes early; and as their lateness does not add up, the
// whole burst comes in time at least once in a few tries on a busy machine.
func TestRunner_keepsModelTime(t *testing.T) {
	topo := fatTree(t, 4)
	src, dst := host(t, topo, "h0.0.2"), host(t, topo, "h3.1.3")
	const rate, size, count = 10e6, 1000, 40
	late := time.Duration(0)
	for range 10 {
		r := Start(network(t, topo, Config{RateBits: rate, Delay: time.Millisecond}), 0)
		start := time.Now()
		for i := range uint32(count) {
			r.Device(src.ID).Write([][]byte{udp(src.Addr, dst.Addr, 1, i, size)}, 0)
		}
		for i := range uint32(count) {
			got := receive(t, r.Device(dst.ID))
			// Six hops for the first, one more frame time for each that follows.
			want := 6*time.Millisecond + time.Duration(i+6)*((size+FrameOverhead)*8*time.Second/rate)
			if late = time.Since(start) - want; late < 0 {
				t.Errorf("packet %d comes %v early", i, -late)
			}
			if payloadNumber(got) != i {
				t.Errorf("packet %d comes as number %d", payloadNumber(got), i)
			}
		}
		r.Close()
		if late < 10*time.Millisecond {
			return
		}
	}
	t.Errorf("the last packet comes %v late, every time", late)
}

// TestRunner_concurrent lets every host send and receive at once.
func TestRunner_concurrent(t *testing.T) {
	topo := fatTree(t, 4)
	r := Start(network(t, topo, Config{RateBits: 1e9, QueueBytes: 1 << 24}), 0)
	defer r.Close()
	const each = 500
	var done sync.WaitGroup
	for src := range topo.Hosts() {
		dst := topo.Node((src.ID + 5) % topology.NodeID(topo.NumHosts()))
		done.Go(func() {
			for i := range uint32(each) {
				b := udp(src.Addr, dst.Addr, 1, i, 500)
				if bounces := topo.Paths(src.ID, dst.ID); !bounces.Direct() {
					b = tunnel(t, src.Addr, bounces.Addr(bounces.Live[int(i)%len(bounces.Live)]), b)
				}
				r.Device(src.ID).Write([][]byte{b}, 0)
				if i%50 == 0 {
					r.Inspect(func(n *Network) {
						if s := n.Stats(); !s.conserved() {
							t.Errorf("%+v", s)
						}
					})
					time.Sleep(time.Millisecond)
				}
			}
		})
		done.Go(func() {
			bufs, sizes := [][]byte{make([]byte, 2000), make([]byte, 2000)}, make([]int, 2)
			for got := 0; got < each; {
				n, err := r.Device(dst.ID).Read(bufs, sizes, 0)
				if err != nil {
					t.Error(err)
					return
				}
				got += n
			}
		})
	}
	done.Wait()
	r.Inspect(func(n *Network) {
		s := n.Stats()
		want := uint64(each * topo.NumHosts())
		if s.Injected != want || s.Delivered != want {
			t.Errorf("%+v, want %d delivered", s, want)
		}
	})
	if r.Undelivered() != 0 {
		t.Errorf("%d lost at the hosts", r.Undelivered())
	}
}

func TestRunner_countsWhatTheHostDoesNotRead(t *testing.T) {
	topo := fatTree(t, 2)
	src, dst := topo.Node(0), topo.Node(1)
	r := Start(network(t, topo, Config{RateBits: 1e9}), 0)
	defer r.Close()
	r.Device(dst.ID).Close()
	r.Device(src.ID).Write([][]byte{udp(src.Addr, dst.Addr, 1, 1, 500)}, 0)
	for deadline := time.Now().Add(time.Minute); r.Undelivered() != 1; {
		if time.Now().After(deadline) {
			t.Fatalf("Undelivered = %d, want 1", r.Undelivered())
		}
		time.Sleep(time.Millisecond)
	}
}

func TestRunner_closeLeavesNothing(t *testing.T) {
	topo := fatTree(t, 4)
	before := runtime.NumGoroutine()
	for range 5 {
		r := Start(network(t, topo, Config{RateBits: 1e6}), 0)
		src, dst := topo.Node(0), topo.Node(9)
		for i := range uint32(20) {
			r.Device(src.ID).Write([][]byte{udp(src.Addr, dst.Addr, 1, i, 1000)}, 0)
		}
		if runtime.NumGoroutine() <= before {
			t.Fatal("the count of goroutines sees none of a Runner's")
		}
		var closing sync.WaitGroup
		for range 3 {
			closing.Go(r.Close)
		}
		closing.Wait()
		if n, err := r.Device(src.ID).Write([][]byte{make([]byte, 20)}, 0); n != 0 || err != nil {
			t.Errorf("Write after Close = %d, %v, want a drop", n, err)
		}
	}
	// Wait returns before the last goroutine has quite gone.
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines left over", runtime.NumGoroutine()-before)
		}
		time.Sleep(time.Millisecond)
	}
}

// BenchmarkRunner has every host send 1500-byte packets at 20 Mbit/s over six
// hops, as the demo does, and reports the processor time that takes.
func BenchmarkRunner(b *testing.B) {
	topo := fatTree(b, 4)
	r := Start(network(b, topo, Config{RateBits: 20e6}), 0)
	defer r.Close()
	for _, d := range r.near {
		go func() {
			bufs, sizes := [][]byte{make([]byte, 1500)}, make([]int, 1)
			for {
				if _, err := d.Read(bufs, sizes, 0); err != nil {
					return
				}
			}
		}()
		defer d.Close()
	}
	var sent [][]byte
	for src := range topology.NodeID(16) {
		dst := (src + 8) % 16
		paths := topo.Paths(src, dst)
		sent = append(sent, tunnel(b, topo.Node(src).Addr, paths.Addr(int(src)%4), udp(topo.Node(src).Addr, topo.Node(dst).Addr, 1, 0, 1480)))
	}
	ticker := time.NewTicker(605600 * time.Nanosecond)
	defer ticker.Stop()
	for b.Loop() {
		<-ticker.C
		for src, p := range sent {
			r.Device(topology.NodeID(src)).Write([][]byte{p}, 0)
		}
	}
}
