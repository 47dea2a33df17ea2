package fabric

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// The program computes the feedback and samples as the Go model does, packet by packet,
// whatever the queue and the packet, and hands over the headers of what it samples.
func TestQCN_programLikeGo(t *testing.T) {
	for name, q := range map[string]QCN{
		"thesis":           {Target: QueueLength{Bytes: 20_000}},
		"growth counts":    {Target: QueueLength{Bytes: 50_000}, Weight: 16, MaxP: 1},
		"a third of many":  {Target: QueueLength{Bytes: 1}, Weight: 0.25, MinP: 0.3, MaxP: 0.4, Plateau: 63},
		"certain, plateau": {Target: QueueLength{Bytes: 1000}, Weight: 2, MinP: 1, MaxP: 1, Plateau: 1},
	} {
		t.Run(name, func(t *testing.T) {
			const most = 200_000
			q.Seed = 1
			r := newMeterRun(t, MeterPort{RateBits: 20e6, QueueBytes: most, BurstBytes: 3200, QCN: q})
			ring, err := ringbuf.NewReader(r.notices)
			if err != nil {
				t.Fatal(err)
			}
			notices := &Notices{ring: ring}
			defer notices.Close()
			rng := rand.New(rand.NewPCG(1, 0))
			told, passed, least := 0, 0, 0
			for i := 0; i < 3000; i++ {
				if rng.IntN(10) == 0 { // the same queue for some packets
					s := r.state(t)
					s.Length, s.QCN.Old = rng.Uint64N(most), rng.Uint64N(most)
					r.put(t, s)
				}
				want := r.state(t)
				protocol := uint8(6)
				if rng.IntN(5) == 0 {
					protocol = 17
				}
				headers, data := 20+4*rng.IntN(11), rng.IntN(1400)
				if rng.IntN(3) == 0 {
					data = rng.IntN(2) // a pure acknowledgement, or a byte
				}
				inner := kerneltest.IPv4{TTL: 64, Protocol: protocol, Src: meterSrc, Dst: meterDst}.Bytes(make([]byte, headers+data))
				inner[20+12] = byte(headers/4) << 4
				binary.BigEndian.PutUint32(inner[24:], rng.Uint32())
				binary.BigEndian.PutUint32(inner[20:], rng.Uint32())
				outer := [...]string{"plain", "IP-in-IP", "twice IP-in-IP", "IPv6"}[rng.IntN(4)]
				packet := outers[outer](0, inner)
				segments, wire, gso := uint64(1), uint64(len(packet)+kernel.EthernetHeader), uint32(0)
				if payload := data; protocol == 6 && payload > 500 && rng.IntN(4) == 0 {
					gso = 200
					segments = uint64(payload+199) / 200
					wire += (segments - 1) * uint64(kernel.EthernetHeader+len(packet)-payload)
				}
				if _, dropped := r.verdict(t, packet, gso); dropped {
					t.Fatal("dropped")
				}
				got := r.state(t)
				level := want.enterQCN(got.Last, wire, segments, protocol == 6 && data > 0)
				if got != want {
					t.Fatalf("packet %d, %s:\ngot  %+v\nwant %+v", i, outer, got, want)
				}
				ring.SetDeadline(time.Unix(0, 1)) // only what is there
				n, err := notices.Next()
				if level == 0 {
					if passed++; err == nil {
						t.Fatalf("packet %d was not sampled, but told of: %+v", i, n)
					}
					continue
				}
				told++
				if data == 1 {
					least++
				}
				want2 := Notice{Port: int(loIndex), Level: uint8(level), Queue: want.QCN.Old, Packet: [28]byte(inner)}
				if err != nil || n != want2 {
					t.Fatalf("packet %d: %+v, %v; want %+v", i, n, err, want2)
				}
			}
			if told < 20 || passed < 20 || least == 0 {
				t.Errorf("%d told of, %d of these with a byte of data, %d not", told, least, passed)
			}
		})
	}
}

// segmentFrom is a packet of TCP with a byte of data.
func segmentFrom(src netip.Addr) []byte {
	b := kerneltest.IPv4{TTL: 64, Protocol: 6, Src: src, Dst: meterDst}.Bytes(make([]byte, 21))
	b[20+12] = 5 << 4
	return b
}

// Where nobody reads, notices are lost and counted, and packets pass.
func TestQCN_nobodyReads(t *testing.T) {
	r := newMeterRun(t, MeterPort{RateBits: 8000, QueueBytes: 1 << 30, QCN: QCN{Target: QueueLength{Bytes: 1}, MinP: 1, MaxP: 1}})
	r.filled(t, 1<<20, 0)
	packet := segmentFrom(meterSrc)
	for range 2000 {
		r.run(t, packet)
	}
	s := r.state(t)
	if held := s.QCN.Sampled - s.QCN.Lost; s.QCN.Sampled != 2000 || held > 65536/noticeLen || held < 1000 {
		t.Errorf("%d sampled, %d lost", s.QCN.Sampled, s.QCN.Lost)
	}
}
