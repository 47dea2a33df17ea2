package fabric

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"weft/internal/balance"
	"weft/internal/elephant"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// gsoContext is the part of struct __sk_buff that says what a packet is cut into.
type gsoContext struct {
	_        [8]byte
	Mark     uint32
	_        [164 - 12]byte
	Segments uint32
	_        [8]byte
	Size     uint32
	_        [192 - 180]byte
}

// elephantOracle says in plain Go whose a packet is, and how many bytes it has on the wire.
// The flow is invalid if it is none that is counted.
func elephantOracle(packet []byte, segments, size uint32) (flow elephant.Flow, bytes uint64) {
	header, whole := 40, true
	if packet[0]>>4 == 4 {
		src, dst := netip.AddrFrom4([4]byte(packet[12:])), netip.AddrFrom4([4]byte(packet[16:]))
		header, whole = int(packet[0]&15)*4, binary.BigEndian.Uint16(packet[6:])&0x3fff == 0
		flow.Protocol, flow.Src, flow.Dst = packet[9], netip.AddrPortFrom(src, 0), netip.AddrPortFrom(dst, 0)
	} else {
		src, dst := netip.AddrFrom16([16]byte(packet[8:])), netip.AddrFrom16([16]byte(packet[24:]))
		flow.Protocol, flow.Src, flow.Dst = packet[6], netip.AddrPortFrom(src, 0), netip.AddrPortFrom(dst, 0)
	}
	if !whole || flow.Protocol != 6 && flow.Protocol != 17 || len(packet) < header+4 {
		return elephant.Flow{}, 0
	}
	flow.Src = netip.AddrPortFrom(flow.Src.Addr(), binary.BigEndian.Uint16(packet[header:]))
	flow.Dst = netip.AddrPortFrom(flow.Dst.Addr(), binary.BigEndian.Uint16(packet[header+2:]))
	all := 14 + len(packet)
	if size == 0 {
		return flow, uint64(all)
	}
	each := 14 + header + 8
	if flow.Protocol == 6 && len(packet) > header+12 {
		each = 14 + header + int(packet[header+12]>>4)*4
	}
	// Cut it, as a device does.
	n := 0
	for left := all - each; left > 0; left -= int(size) {
		n++
	}
	if segments > 0 {
		n = int(segments)
	}
	return flow, uint64(all + max(0, n-1)*each)
}

// Each flow's bytes are counted as they are on the wire. A packet goes by its flow's pin while that is
// valid and its port a next hop, and otherwise by the rule.
func TestBalance_elephantsLikeTheOracle(t *testing.T) {
	const far, past = uint64(1) << 62, uint64(1)
	for _, rule := range []string{"ecmp", "rrb", "drill", "letflow"} {
		t.Run(rule, func(t *testing.T) {
			r := openBalanceRun(t, rule, hashToMark, elephant.PinAndCount)
			rng := rand.New(rand.NewPCG(2, 21))
			sent, pins := make(map[elephant.Flow]uint64), make(map[elephant.Flow]kernel.PinValue)
			var want elephant.ProgramStats
			for n := range 4000 {
				packet, p, set := randomPacket(rng)
				c := gsoContext{}
				if rng.IntN(3) == 0 {
					c.Size, c.Segments = 1+rng.Uint32N(20), rng.Uint32N(3)
				}
				flow, bytes := elephantOracle(packet, c.Segments, c.Size)
				counts := set != noRandomSet && flow.Src.IsValid()
				if counts && rng.IntN(4) == 0 {
					s := &r.sets[r.number(t, p)]
					v := kernel.PinValue{Until: []uint64{far, far, far, past}[rng.IntN(4)], Way: 100*set + 1 + rng.Uint32N(6), Among: rng.Uint32()}
					if i := slices.IndexFunc(s.Steps[:s.N], func(s balance.Step) bool { return s.Port == v.Way }); i >= 0 && rng.IntN(8) > 0 {
						v.Among = uint32(i)
					}
					r.put(t, r.Pins, flow.Key(), v)
					pins[flow] = v
				}
				got := r.runContext(t, ethernet(packet), c)
				if set == noRandomSet {
					if got != cleared {
						t.Fatalf("packet %d: hash %#x of one that is left to the routes", n, got)
					}
					continue
				}
				s := &r.sets[r.number(t, p)]
				pinned := false
				if counts {
					if sent[flow] == 0 {
						want.Counted++
					}
					sent[flow] += bytes
					if pin, ok := pins[flow]; ok {
						i := pin.Among % balance.MaxSteps
						if pinned = pin.Until == far && s.Steps[i].Port == pin.Way; pinned {
							want.Pinned++
							if got != s.Steps[i].Hash {
								t.Fatalf("packet %d of %v, pinned to port %d: hash %#x, want %#x", n, flow, pin.Way, got, s.Steps[i].Hash)
							}
						} else {
							want.Unpinned++
						}
					}
				}
				if !pinned && (rule == "ecmp") != (got == cleared) {
					t.Fatalf("packet %d of %v, not pinned: hash %#x under %s", n, flow, got, rule)
				}
			}
			var have elephant.ProgramStats
			var others BalanceStats
			if err := kernel.SumCounters(r.Counters, append(others.sums(), &have.Counted, &have.Pinned, &have.Unpinned)...); err != nil {
				t.Fatal(err)
			}
			if have != want || want.Pinned == 0 || want.Unpinned == 0 {
				t.Errorf("%+v, want %+v", have, want)
			}
			counts, err := kernel.FlowCounts(r.Counted, nil)
			if err != nil || len(counts) != len(sent) {
				t.Fatalf("%d flows, %v, want %d", len(counts), err, len(sent))
			}
			for _, c := range counts {
				if f := c.Key.Flow(); sent[f] != c.Bytes {
					t.Errorf("%v has sent %d bytes, want %d", f, c.Bytes, sent[f])
				}
			}
		})
	}
}

// runContext is run of a frame that may be a super-segment.
func (r *balanceRun) runContext(t testing.TB, frame []byte, in gsoContext) (hash uint32) {
	t.Helper()
	var out gsoContext
	if _, err := r.In.Run(&ebpf.RunOptions{Data: frame, Context: in, ContextOut: &out}); err != nil {
		t.Fatal(err)
	}
	return out.Mark
}

// BenchmarkElephants is what counting and pins cost a packet, by what the program does.
func BenchmarkElephants(b *testing.B) {
	h := kerneltest.IPv4{Frag: 0x4000, TTL: 64, Protocol: 6, Src: netip.MustParseAddr("10.200.0.1"), Dst: netip.MustParseAddr("10.2.0.1")}
	frame := ethernet(h.Bytes(make([]byte, 1460)))
	flow, _ := elephantOracle(frame[14:], 0, 0)
	for _, c := range []struct {
		name   string
		duty   elephant.Duty
		pinned uint32
	}{{"ecmp alone", elephant.Nothing, 0}, {"pins", elephant.PinFlows, 0}, {"counts", elephant.PinAndCount, 0},
		{"counted and pinned", elephant.PinAndCount, 201}} {
		b.Run(c.name, func(b *testing.B) {
			r := openBalanceRun(b, "ecmp", func(testing.TB, asm.Instructions) {}, c.duty)
			if c.pinned > 0 {
				p := balance.Packet{Dst: binary.BigEndian.Uint32(frame[30:])}
				s := r.sets[r.number(b, p)].Steps[:]
				i := slices.IndexFunc(s, func(s balance.Step) bool { return s.Port == c.pinned })
				r.put(b, r.Pins, flow.Key(), kernel.PinValue{Until: 1 << 62, Way: c.pinned, Among: uint32(i)})
			}
			_, each, err := r.In.Benchmark(frame, b.N, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(each), "ns/packet")
		})
	}
}
