package fabric

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/cilium/ebpf"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// meterRun is the program with one port, the loopback device, which packets are
// run through without a network. The port's link is so slow that nothing drains
// while a test looks.
type meterRun struct {
	prog    *ebpf.Program
	states  *ebpf.Map
	notices *ebpf.Map
}

const loIndex = uint32(1)

func newMeterRun(t testing.TB, p MeterPort) *meterRun {
	t.Helper()
	kerneltest.NeedRoot(t)
	p.Name = "lo"
	p, err := p.complete()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := loadMeter()
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		Prog    *ebpf.Program `ebpf:"weft_meter"`
		Meters  *ebpf.Map     `ebpf:"meters"`
		Notices *ebpf.Map     `ebpf:"notices"`
	}
	if err := kernel.Load(spec, &o, meterNeeds); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Prog.Close(); o.Meters.Close(); o.Notices.Close() })
	r := &meterRun{o.Prog, o.Meters, o.Notices}
	r.put(t, p.state())
	return r
}

func (r *meterRun) put(t testing.TB, s meterState) {
	t.Helper()
	if err := r.states.Put(loIndex, &s); err != nil {
		t.Fatal(err)
	}
}

func (r *meterRun) state(t testing.TB) (s meterState) {
	t.Helper()
	if err := r.states.LookupWithFlags(loIndex, &s, ebpf.LookupLock); err != nil {
		t.Fatal(err)
	}
	s.Lock = 0
	return s
}

// run passes an IP packet through the program and returns what comes out.
func (r *meterRun) run(t testing.TB, packet []byte) []byte {
	t.Helper()
	kind := uint16(0x0800)
	if packet[0]>>4 == 6 {
		kind = 0x86dd
	}
	frame := append(binary.BigEndian.AppendUint16(make([]byte, 12), kind), packet...)
	out := make([]byte, len(frame)+256)
	o := ebpf.RunOptions{Data: frame, DataOut: out}
	verdict, err := r.prog.Run(&o)
	if errors.Is(err, ebpf.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if int32(verdict) != kernel.TCUnspec {
		t.Fatalf("verdict %d, want %d", int32(verdict), kernel.TCUnspec)
	}
	return o.DataOut[kernel.EthernetHeader:]
}

// filled puts bytes into the queue, and a load into the estimator, in eighths.
func (r *meterRun) filled(t testing.TB, length uint64, load float64) {
	t.Helper()
	s := r.state(t)
	now, err := kernel.Monotonic()
	if err != nil {
		t.Fatal(err)
	}
	s.Last, s.Length, s.Remainder = now, length, 0
	s.Ticked, s.Register = s.Last/s.Tick, uint64(load/dreLevels*float64(s.Target))
	r.put(t, s)
}

func BenchmarkMeter(b *testing.B) {
	r := newMeterRun(b, MeterPort{RateBits: 100e9, QueueBytes: 1 << 20})
	data := kerneltest.IPv4{TOS: 2, Frag: 0x4000, TTL: 64, Protocol: 6, Src: meterSrc, Dst: meterDst}.Bytes(make([]byte, 1480))
	for _, outer := range []string{"plain", "IP-in-IP", "IPv6"} {
		b.Run(outer, func(b *testing.B) {
			kind := uint16(0x0800)
			if outer == "IPv6" {
				kind = 0x86dd
			}
			frame := append(binary.BigEndian.AppendUint16(make([]byte, 12), kind), outers[outer](2, data)...)
			_, each, err := r.prog.Benchmark(frame, b.N, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(each), "ns/packet")
		})
	}
}
