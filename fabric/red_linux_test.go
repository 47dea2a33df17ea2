package fabric

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// verdict is run for packets that may be dropped.
func (r *meterRun) verdict(t testing.TB, packet []byte, gsoSize uint32) (out []byte, dropped bool) {
	t.Helper()
	kind := uint16(0x0800)
	if packet[0]>>4 == 6 {
		kind = 0x86dd
	}
	frame := append(binary.BigEndian.AppendUint16(make([]byte, 12), kind), packet...)
	o := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256), Context: skbContext{GSOSize: gsoSize}}
	verdict, err := r.prog.Run(&o)
	if errors.Is(err, ebpf.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if int32(verdict) != kernel.TCUnspec && verdict != kernel.TCShot {
		t.Fatalf("verdict %d", int32(verdict))
	}
	return o.DataOut[kernel.EthernetHeader:], verdict == kernel.TCShot
}

// The program decides on each packet as the Go model does, and keeps the same state, at the
// times at which it ran: whatever the average, the queue and the packet.
func TestRED_programLikeGo(t *testing.T) {
	for name, red := range map[string]RED{
		"drop":         {Min: QueueLength{Bytes: 20_000}, Max: QueueLength{Bytes: 60_000}},
		"mark, gentle": {Min: QueueLength{Bytes: 20_000}, Max: QueueLength{Bytes: 60_000}, MaxP: 0.5, Gentle: true, Mark: true},
		"slow average": {Min: QueueLength{Bytes: 100}, Max: QueueLength{Bytes: 90_000}, Weight: 0.002, MaxP: 0.2, Mark: true},
		"no average":   {Min: QueueLength{Bytes: 1000}, Max: QueueLength{Bytes: 100_000}, Weight: 1, MaxP: 1, Gentle: true},
	} {
		t.Run(name, func(t *testing.T) {
			const most = 200_000
			red.Seed = 1
			r := newMeterRun(t, MeterPort{RateBits: 20e6, QueueBytes: most, BurstBytes: 3200, RED: red})
			rng := rand.New(rand.NewPCG(1, 0))
			// At least 2000 packets, and on until each fate was seen: the clock is the kernel's.
			marks, drops, passed := 0, 0, 0
			for i := 0; i < 2000 || (drops == 0 || passed == 0 || red.Mark && marks == 0) && i < 100_000; i++ {
				if rng.IntN(10) == 0 { // the same queue for some packets, so that they are counted
					s := r.state(t)
					s.Length = rng.Uint64N(most)
					s.RED.Average = rng.Uint64N(150_000 << redFraction)
					r.put(t, s)
				}
				if rng.IntN(50) == 0 { // long ago
					s := r.state(t)
					s.Last -= min(s.Last, rng.Uint64N(1e11))
					r.put(t, s)
				}
				if rng.IntN(100) == 0 {
					time.Sleep(time.Duration(rng.IntN(5_000_000)))
				}
				want := r.state(t)
				packet := kerneltest.IPv4{TOS: byte(rng.Uint32()), TTL: 64, Protocol: 6, Src: meterSrc, Dst: meterDst}.Bytes(make([]byte, 20+rng.IntN(1400)))
				packet[20+12] = 5 << 4
				segments, wire, gso := uint64(1), uint64(len(packet)+kernel.EthernetHeader), uint32(0)
				if payload := len(packet) - 40; payload > 500 && rng.IntN(4) == 0 {
					gso = 200
					segments = uint64(payload+199) / 200
					wire += (segments - 1) * (kernel.EthernetHeader + 40)
				}
				out, dropped := r.verdict(t, packet, gso)
				got := r.state(t)
				now := got.Last
				mark, drop := want.enterRED(now, wire, segments, packet[1]&3 != 0, packet[1] >= 0xc0)
				if mark && packet[1]&3 != 3 {
					want.Marks++
				}
				if got != want || drop != dropped {
					t.Fatalf("packet %d, dropped %v, want %v:\ngot  %+v\nwant %+v", i, dropped, drop, got, want)
				}
				if ce := out[1]&3 == 3; !dropped && ce != (mark || packet[1]&3 == 3) {
					t.Fatalf("packet %d: CE %v, to be marked %v", i, ce, mark)
				}
				switch {
				case dropped:
					drops++
				case mark:
					marks++
				default:
					passed++
				}
			}
			if drops == 0 || passed == 0 || red.Mark && marks == 0 {
				t.Errorf("%d dropped, %d marked, %d passed: not each fate was seen", drops, marks, passed)
			}
		})
	}
}

// ARP and IPv6's neighbour discovery are never dropped, whatever the average. What has come
// through a router is no neighbour discovery.
func TestRED_sparesNeighbours(t *testing.T) {
	r := newMeterRun(t, MeterPort{RateBits: 8000, QueueBytes: 1 << 20, RED: RED{Min: QueueLength{Bytes: 1}, Max: QueueLength{Bytes: 2}, Weight: 1}})
	r.filled(t, 100_000, 0)
	frame := make([]byte, 60)
	for kind, want := range map[uint16]uint32{0x0806: 0xffffffff, 0x0800: kernel.TCShot, 0x8847: kernel.TCShot} {
		binary.BigEndian.PutUint16(frame[12:], kind)
		frame[kernel.EthernetHeader] = 0x45
		verdict, err := r.prog.Run(&ebpf.RunOptions{Data: frame, DataOut: make([]byte, 256)})
		if err != nil {
			t.Fatal(err)
		}
		if verdict != want {
			t.Errorf("frame of type %#04x: verdict %d, want %d", kind, int32(verdict), int32(want))
		}
	}
	for _, c := range []struct {
		next, hops, kind byte
		spared           bool
	}{
		{58, 255, 132, false}, {58, 255, 133, true}, {58, 255, 135, true}, {58, 255, 136, true}, {58, 255, 137, true}, {58, 255, 138, false},
		{58, 254, 135, false}, {17, 255, 135, false},
	} {
		packet := make([]byte, 64)
		packet[0], packet[6], packet[7], packet[40] = 0x60, c.next, c.hops, c.kind
		if _, dropped := r.verdict(t, packet, 0); dropped == c.spared {
			t.Errorf("%+v: dropped %v", c, dropped)
		}
	}
}
