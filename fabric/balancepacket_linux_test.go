package fabric

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// What is no IP packet is left alone. One with a mark, an outer header, a VLAN's tag or
// another device's address gets no hash, and loses what it had.
func TestBalance_leavesAlone(t *testing.T) {
	r := newBalanceRun(t, "rrb")
	plain := kerneltest.IPv4{TTL: 60, Protocol: 6, Src: meterSrc, Dst: netip.MustParseAddr("10.0.0.9")}.Bytes(make([]byte, 20))
	if r.run(t, plain, 0) == 0 {
		t.Fatal("a plain packet got no hash")
	}
	if hash := r.run(t, plain, 5); hash != cleared {
		t.Errorf("a marked packet got hash %#x", hash)
	}
	outer := kerneltest.IPv4{TTL: 60, Protocol: 4, Src: meterSrc, Dst: netip.MustParseAddr("10.0.0.9")}.Bytes(plain)
	if hash := r.run(t, outer, 0); hash != cleared {
		t.Errorf("an encapsulated packet got hash %#x", hash)
	}
	elsewhere := ethernet(plain)
	copy(elsewhere, []byte{2, 0, 0, 0, 0, 9})
	if hash := r.runFrame(t, elsewhere, 0); hash != cleared {
		t.Errorf("a packet for another device got hash %#x", hash)
	}
	six := kerneltest.IPv6{Hops: 60, Next: 6, Src: netip.MustParseAddr("fd00::1"), Dst: netip.MustParseAddr("fd00:0:1::1")}
	if hash := r.run(t, six.Bytes(make([]byte, 20)), 0); hash == 0 || hash == cleared {
		t.Errorf("a plain packet of IPv6 got hash %#x", hash)
	}
	if hash := r.run(t, six.Bytes(make([]byte, 20)), 5); hash != cleared {
		t.Errorf("a marked packet of IPv6 got hash %#x", hash)
	}
	for name, next := range map[string]byte{"IPv4 in IPv6": 4, "IPv6 in IPv6": 41, "a list of segments": 43} {
		if six.Next = next; r.run(t, six.Bytes(plain), 0) != cleared {
			t.Errorf("%s got a hash", name)
		}
	}
	mpls := ethernet(plain)
	binary.BigEndian.PutUint16(mpls[12:], 0x8847)
	if hash := r.runFrame(t, mpls, 0); hash != 0 {
		t.Errorf("an MPLS packet got hash %#x", hash)
	}
}

// decisions counts the packets that weft_balance has seen.
func (r *balanceRun) decisions(t testing.TB) uint64 {
	t.Helper()
	var s BalanceStats
	if err := kernel.SumCounters(r.Counters, s.sums()...); err != nil {
		t.Fatal(err)
	}
	return s.Chosen + s.Plain
}

// A packet of any bytes goes on, and counts once.
func FuzzBalance(f *testing.F) {
	r := newBalanceRun(f, "letflow")
	f.Add(kerneltest.IPv4{TTL: 60, Protocol: 6, Src: meterSrc, Dst: netip.MustParseAddr("10.0.0.9")}.Bytes(make([]byte, 20)))
	f.Add(kerneltest.IPv6{Hops: 60, Next: 6, Src: netip.MustParseAddr("fd00::1"), Dst: netip.MustParseAddr("fd00:0:1::1")}.Bytes(make([]byte, 20)))
	f.Add(make([]byte, 1))
	f.Fuzz(func(t *testing.T, packet []byte) {
		if len(packet) == 0 || len(packet) > 1500 {
			return
		}
		before := r.decisions(t)
		verdict, err := r.In.Run(&ebpf.RunOptions{Data: ethernet(packet)})
		if err != nil {
			return // the kernel refuses those shorter than a header
		}
		if int32(verdict) != kernel.TCUnspec {
			t.Errorf("verdict %d, want %d", int32(verdict), kernel.TCUnspec)
		}
		if n := r.decisions(t) - before; n != 1 {
			t.Errorf("counted %d times", n)
		}
	})
}

// The egress program fills a port's virtual queue as its Go twin does, up to its room.
func TestBalance_queue(t *testing.T) {
	r := newBalanceRun(t, "drill")
	packet := kerneltest.IPv4{TTL: 60, Protocol: 6, Src: meterSrc, Dst: meterDst}.Bytes(make([]byte, 700))
	frame := ethernet(packet)
	for _, p := range []MeterPort{{RateBits: 20e6, QueueBytes: 75000}, {RateBits: 100e9, QueueBytes: 1 << 20}, {RateBits: 8000, QueueBytes: 100}} {
		p.Name = "lo"
		q, err := p.queue()
		if err != nil {
			t.Fatal(err)
		}
		// Within the room it is exact, if nothing drains.
		for _, q := range []balanceQueue{{Byte: q.Byte, Room: 1 << 62, Empty: 1 << 61}, q} {
			before, err := kernel.Monotonic()
			if err != nil {
				t.Fatal(err)
			}
			r.put(t, r.Queues, loIndex, &q)
			for range 50 {
				if _, err := r.Out.Run(&ebpf.RunOptions{Data: frame, Context: hashedContext{}}); err != nil {
					t.Fatal(err)
				}
			}
			after, err := kernel.Monotonic()
			if err != nil {
				t.Fatal(err)
			}
			var got balanceQueue
			if err := r.Queues.LookupWithFlags(loIndex, &got, ebpf.LookupLock); err != nil {
				t.Fatal(err)
			}
			least, most := q, q
			for range 50 { // as if all had come at once, first or last
				least.enter(before, uint64(len(frame)))
				most.enter(after, uint64(len(frame)))
			}
			if got.Empty < least.Empty || got.Empty > most.Empty {
				t.Errorf("%+v, %+v: empty at %d, want from %d to %d", p, q, got.Empty, least.Empty, most.Empty)
			}
		}
	}
	// 1514 bytes at 20 Mbit/s take 605.6 µs.
	q, err := MeterPort{Name: "p", RateBits: 20e6}.queue()
	if err != nil {
		t.Fatal(err)
	}
	q.enter(1000, 1514)
	if got := time.Duration(q.Empty - 1000); got != 605_600 {
		t.Errorf("a packet takes %v", got)
	}
}

// BenchmarkBalance is the cost of a packet with a rule, at ingress and at egress.
func BenchmarkBalance(b *testing.B) {
	for _, rule := range []string{"rb", "rrb", "drb", "letflow", "drill", "drill:d=4,m=2"} {
		r := openBalanceRun(b, rule, func(testing.TB, asm.Instructions) {}) // a mark would end each run but the first
		for i := range uint32(4) {
			q, err := MeterPort{Name: "p", RateBits: 100e9, QueueBytes: 1 << 20}.queue()
			if err != nil {
				b.Fatal(err)
			}
			r.put(b, r.Queues, i+1, &q)
		}
		frame := ethernet(kerneltest.IPv4{TTL: 60, Protocol: 6, Src: meterSrc, Dst: netip.MustParseAddr("10.0.0.9")}.Bytes(make([]byte, 1400)))
		for _, at := range []struct {
			name string
			prog *ebpf.Program
		}{{"in", r.In}, {"out", r.Out}} {
			b.Run(rule+"/"+at.name, func(b *testing.B) {
				_, each, err := at.prog.Benchmark(frame, b.N, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(each), "ns/packet")
			})
		}
	}
}
