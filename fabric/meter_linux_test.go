package fabric

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weft/conga"
	"weft/encap"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// metered is what a meter is to make of a packet: the oracle.
func metered(packet []byte, units int, load uint8, mark bool) []byte {
	b := bytes.Clone(packet)
	encap.AddQueue(b, units)
	if inner := kerneltest.Innermost(b); inner != nil && inner[9] == 6 && inner[1]>>2 == conga.MarkDSCP && inner[6]&0x40 != 0 {
		binary.BigEndian.PutUint16(inner[4:], conga.Raise(binary.BigEndian.Uint16(inner[4:]), load))
		mend(inner)
	}
	switch {
	case !mark:
	case b[0]>>4 == 4 && b[1]&3 != 0:
		b[1] |= 3
		mend(b)
	case b[0]>>4 == 6 && b[1]&0x30 != 0:
		b[1] |= 0x30
	}
	return b
}

// mend makes a header's checksum right.
func mend(ip []byte) {
	n := int(ip[0]&15) * 4
	ip[10], ip[11] = 0, 0
	binary.BigEndian.PutUint16(ip[10:], ^kerneltest.OnesSum(ip[:n]))
}

// outers are the headers that probes may be behind.
var outers = map[string]func(ecn byte, inner []byte) []byte{
	"plain": func(_ byte, b []byte) []byte { return b },
	"IP-in-IP": func(ecn byte, b []byte) []byte {
		return kerneltest.IPv4{TOS: ecn, TTL: 64, Protocol: 4, Src: meterSrc, Dst: meterDst}.Bytes(b)
	},
	"twice IP-in-IP": func(ecn byte, b []byte) []byte {
		return kerneltest.IPv4{TOS: ecn, TTL: 64, Protocol: 4, Src: meterSrc, Dst: meterDst}.Bytes(
			kerneltest.IPv4{TTL: 64, Protocol: 4, Src: meterSrc, Dst: meterDst}.Bytes(b))
	},
	"IPv6": func(ecn byte, b []byte) []byte {
		h := make([]byte, 40, 40+len(b))
		h[0], h[1], h[6], h[7] = 0x60, ecn<<4, 4, 64
		binary.BigEndian.PutUint16(h[4:], uint16(len(b)))
		return append(h, b...)
	},
}

var meterSrc, meterDst = netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.3.1.3")

// Whatever a packet is and however long the queue, the program makes of it what
// encap and conga say.
func TestMeter_likeTheOracle(t *testing.T) {
	const unit, ecnAt = 1000, 20_000
	r := newMeterRun(t, MeterPort{RateBits: 8000, QueueBytes: 1 << 20, ECNBytes: ecnAt, QCMUnit: unit, Tau: time.Minute})
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		// Half a unit more, since a byte drains in a millisecond.
		units := rng.IntN(160)
		length := uint64(units*unit + unit/2)
		load := uint8(rng.IntN(8))
		r.filled(t, length, float64(load)+0.5)
		packet, name := meterPacket(t, rng)
		want := metered(packet, units+1, load, length > ecnAt)
		if got := r.run(t, packet); !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %s, queue %d, load %d:\n%sgot\n%swant\n%s", seed, name, length, load, hex.Dump(packet), hex.Dump(got), hex.Dump(want))
		}
	}
}

// meterPacket makes up a packet, mostly one that a meter has to do with.
func meterPacket(t *testing.T, rng *rand.Rand) (packet []byte, name string) {
	var inner []byte
	h := kerneltest.IPv4{TOS: byte(rng.Uint32()), ID: uint16(rng.Uint32()), Frag: 0x4000, TTL: 60, Src: meterSrc, Dst: meterDst}
	switch kind := rng.IntN(8); kind {
	case 0, 1, 2:
		name = "sample"
		s := encap.Sample{Path: rng.Uint32N(1 << 24), ACK: rng.IntN(4) == 0, Queue: uint8(rng.IntN(128)), Meters: uint8(rng.Uint32()), Token: rng.Uint64(), From: meterSrc, To: meterDst}
		var err error
		if inner, err = encap.AppendSample(nil, s); err != nil {
			t.Fatal(err)
		}
		switch rng.IntN(8) {
		case 0:
			inner[26], inner[27] = 0, 0 // no checksum: there is to be none
		case 1:
			inner[28+rng.IntN(4)]++ // no magic
		case 2:
			inner = inner[:len(inner)-1-rng.IntN(31)]
		case 3:
			inner[6] |= 0x20 // a fragment
			mend(inner)
		}
	case 3, 4, 5:
		name = "TCP"
		if rng.IntN(4) != 0 {
			h.TOS = conga.MarkDSCP<<2 | byte(rng.IntN(4))
		}
		h.Protocol = 6
		if rng.IntN(8) == 0 {
			h.Frag = 0
		}
		inner = h.Bytes(make([]byte, 20+rng.IntN(100)))
	case 6:
		name = "UDP"
		h.Protocol = 17
		inner = h.Bytes(make([]byte, 8+rng.IntN(100)))
	default:
		name = "noise"
		inner = make([]byte, 20+rng.IntN(100))
		for i := range inner {
			inner[i] = byte(rng.Uint32())
		}
		inner[0] = 0x45 // or the frame is no IP packet
		inner[9] = 253
		mend(inner)
	}
	for outer, wrap := range outers {
		return wrap(byte(rng.IntN(4)), inner), outer + " " + name
	}
	panic("no outer header")
}

// The program's queue and estimator are the Go ones to the byte, at the times at
// which the program ran.
func TestMeter_stateLikeGo(t *testing.T) {
	for _, p := range []MeterPort{
		{RateBits: 20e6, QueueBytes: 75_000, BurstBytes: 3200},
		{RateBits: 1e9, QueueBytes: 30_000, Tau: time.Millisecond},
		{RateBits: 400e9, QueueBytes: 1 << 20, Tau: 100 * time.Microsecond},
		{RateBits: 9999, QueueBytes: 1500, Tau: 30 * time.Second},
	} {
		r := newMeterRun(t, p)
		seed := uint64(time.Now().UnixNano())
		rng := rand.New(rand.NewPCG(seed, 0))
		for i := range 500 {
			want := r.state(t)
			packet := kerneltest.IPv4{TTL: 64, Protocol: 253, Src: meterSrc, Dst: meterDst}.Bytes(make([]byte, rng.IntN(1480)))
			r.run(t, packet)
			if rng.IntN(20) == 0 {
				time.Sleep(time.Duration(rng.IntN(3_000_000)))
			}
			got := r.state(t)
			// Last is when the program ran; the tick cannot be older.
			want.enter(got.Last, uint64(len(packet)+kernel.EthernetHeader), 1)
			if got != want {
				t.Fatalf("%v, seed %d, packet %d:\ngot  %+v\nwant %+v", p, seed, i, got, want)
			}
		}
		if s := r.state(t); s.Packets != 500 || s.Max == 0 || s.Max > uint64(p.QueueBytes) {
			t.Errorf("%v: %+v", p, s)
		}
	}
}

// skbContext is the part of struct __sk_buff that a test run takes.
type skbContext struct {
	_       [40]byte
	Ifindex uint32
	_       [176 - 44]byte
	GSOSize uint32
	_       [192 - 180]byte
}

// A super-segment counts as the packets that it becomes, each with the headers of
// all.
func TestMeter_superSegments(t *testing.T) {
	r := newMeterRun(t, MeterPort{RateBits: 8000, QueueBytes: 3000})
	tcp := make([]byte, 20+12+5*500)
	tcp[12] = 8 << 4 // options, too
	inner := kerneltest.IPv4{Frag: 0x4000, TTL: 64, Protocol: 6, Src: meterSrc, Dst: meterDst}.Bytes(tcp)
	for name, wrap := range outers {
		r.put(t, mustMeterState(t, MeterPort{RateBits: 8000, QueueBytes: 3000}))
		packet := wrap(0, inner)
		kind := uint16(0x0800)
		if packet[0]>>4 == 6 {
			kind = 0x86dd
		}
		o := ebpf.RunOptions{Data: append(binary.BigEndian.AppendUint16(make([]byte, 12), kind), packet...),
			Context: skbContext{GSOSize: 500}}
		if _, err := r.prog.Run(&o); err != nil {
			t.Fatal(name, err)
		}
		headers := uint64(len(packet) - len(tcp) + 32 + kernel.EthernetHeader)
		if s := r.state(t); s.Packets != 5 || s.Bytes != 5*(headers+500) {
			t.Errorf("%s: %d packets, %d bytes, want %d", name, s.Packets, s.Bytes, 5*(headers+500))
		}
	}
}
