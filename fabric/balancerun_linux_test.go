package fabric

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"weft/internal/balance"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// balanceRun is the programs without a network. Test runs do not tell a packet's hash, so
// weft_balance writes it into the mark here.
type balanceRun struct {
	In       *ebpf.Program `ebpf:"weft_balance"`
	Out      *ebpf.Program `ebpf:"weft_queue"`
	Counters *ebpf.Map     `ebpf:"counters"`
	Routes   *ebpf.Map     `ebpf:"destinations"`
	Sets     *ebpf.Map     `ebpf:"sets"`
	Queues   *ebpf.Map     `ebpf:"queues"`
	Engines  *ebpf.Map     `ebpf:"engines"`
	Pairs    *ebpf.Map     `ebpf:"pairs"`
	Flowlets *ebpf.Map     `ebpf:"flowlets"`

	rule balance.Rule
	seed uint64
	sets []balance.Set
	cpu  int
}

// cleared is the mark of a packet from which weft_balance takes the hash.
const cleared = 0xc1ea4ed

// hashedContext is the part of struct __sk_buff that a test run takes and gives.
type hashedContext struct {
	_    [8]byte
	Mark uint32
	_    [192 - 12]byte
}

// newBalanceRun has four sets: of four hops, of unequal weights, of sixty-four, and of three
// groups with unequal weights.
// 10.N.0.0/16 leads by set N, except for 10.N.255.0/24, to which there is one way.
func newBalanceRun(t testing.TB, rule string) *balanceRun {
	t.Helper()
	return openBalanceRun(t, rule, hashToMark)
}

// hashToMark has a program write a packet's mark where it writes its hash, which a test run
// does not give.
func hashToMark(t testing.TB, ins asm.Instructions) {
	t.Helper()
	patched := make(map[asm.BuiltinFunc]int)
	for i := range ins {
		if !ins[i].IsBuiltinCall() {
			continue
		}
		f := asm.BuiltinFunc(ins[i].Constant)
		patched[f]++
		switch f {
		case asm.FnSetHash:
			ins[i] = asm.StoreMem(asm.R1, 8, asm.R2, asm.Word).WithMetadata(ins[i].Metadata)
		case asm.FnSetHashInvalid:
			ins[i] = asm.StoreImm(asm.R1, 8, cleared, asm.Word).WithMetadata(ins[i].Metadata)
		}
	}
	if patched[asm.FnSetHash] == 0 || patched[asm.FnSetHashInvalid] == 0 {
		t.Fatal("the program sets or takes no hash")
	}
}

func openBalanceRun(t testing.TB, rule string, change func(testing.TB, asm.Instructions)) *balanceRun {
	t.Helper()
	kerneltest.NeedRoot(t)
	r := &balanceRun{seed: 77}
	var err error
	if r.rule, err = balance.Parse(rule); err != nil {
		t.Fatal(err)
	}
	spec, err := balanceSpec(r.rule, r.seed)
	if err != nil {
		t.Fatal(err)
	}
	change(t, spec.Programs[balanceProgWeftBalance].Instructions)
	if err := kernel.Load(spec, r, balanceNeeds); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.In.Close()
		r.Out.Close()
		for _, m := range []*ebpf.Map{r.Counters, r.Routes, r.Sets, r.Queues, r.Engines, r.Pairs, r.Flowlets} {
			m.Close()
		}
	})
	routes := make(map[netip.Prefix][]balance.Hop)
	for n, weights := range [][]uint32{slices.Repeat([]uint32{1}, 4), {3, 1, 2}, slices.Repeat([]uint32{7}, 64), {2, 1, 1, 3, 1}} {
		prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n)}), 16)
		for i, w := range weights {
			hop := balance.Hop{Port: uint32(100*n + i + 1), Weight: w}
			if n == 3 {
				hop.Group = []uint32{0, 1, 1, 2, 0}[i]
			}
			routes[prefix] = append(routes[prefix], hop)
		}
		routes[netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n), 255}), 24)] = nil
	}
	r.sets = make([]balance.Set, maxBalanceSets)
	table, changed, f := tablesOf(routes, r.sets)
	if f != (filled{destinations: 4, grouped: 1}) || len(table) != 8 || len(changed) != 4 {
		t.Fatalf("%+v, %v, %v", f, table, changed)
	}
	for _, i := range changed {
		r.put(t, r.Sets, uint32(i), &r.sets[i])
	}
	for k, v := range table {
		r.put(t, r.Routes, k, v)
	}
	r.pin(t)
	return r
}

func (r *balanceRun) put(t testing.TB, m *ebpf.Map, k, v any) {
	t.Helper()
	if err := m.Put(k, v); err != nil {
		t.Fatal(err)
	}
}

// pin keeps the test on one processor, whose engine it then knows.
func (r *balanceRun) pin(t testing.TB) {
	t.Helper()
	runtime.LockOSThread()
	var was, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &was); err != nil {
		t.Fatal(err)
	}
	for r.cpu = 0; !was.IsSet(r.cpu); r.cpu++ {
	}
	one.Set(r.cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.SchedSetaffinity(0, &was)
		runtime.UnlockOSThread()
	})
}

// engine is the processor's for a set, or for a group of it.
func (r *balanceRun) engine(t testing.TB, set uint32) balance.Engine {
	t.Helper()
	var all []balance.Engine
	if err := r.Engines.Lookup(set, &all); err != nil {
		t.Fatal(err)
	}
	return all[r.cpu]
}

// run passes an IP packet through weft_balance and returns its hash.
func (r *balanceRun) run(t testing.TB, packet []byte, mark uint32) (hash uint32) {
	t.Helper()
	return r.runFrame(t, ethernet(packet), mark)
}

func (r *balanceRun) runFrame(t testing.TB, frame []byte, mark uint32) (hash uint32) {
	t.Helper()
	out := hashedContext{}
	o := ebpf.RunOptions{Data: frame, Context: hashedContext{Mark: mark}, ContextOut: &out}
	verdict, err := r.In.Run(&o)
	if errors.Is(err, ebpf.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if int32(verdict) != kernel.TCUnspec {
		t.Fatalf("verdict %d, want %d", int32(verdict), kernel.TCUnspec)
	}
	return out.Mark
}

func ethernet(packet []byte) []byte {
	kind := uint16(0x0800)
	if packet[0]>>4 == 6 {
		kind = 0x86dd
	}
	return append(binary.BigEndian.AppendUint16(make([]byte, 12), kind), packet...)
}

// randomPacket is of one of a few hosts and flows, and says what the rules know of it.
func randomPacket(rng *rand.Rand) (bytes []byte, p balance.Packet) {
	dst := [4]byte{10, byte(rng.IntN(5)), 0, byte(rng.IntN(4))}
	if rng.IntN(8) == 0 {
		dst[2] = 255
	}
	src := [4]byte{10, 200, 0, byte(rng.IntN(8))}
	p = balance.Packet{Src: binary.BigEndian.Uint32(src[:]), Dst: binary.BigEndian.Uint32(dst[:]),
		Protocol: []uint8{1, 4, 6, 6, 6, 17, 33, 132}[rng.IntN(8)]}
	h := kerneltest.IPv4{ID: uint16(rng.Uint32()), TTL: 60, Protocol: p.Protocol, Src: netip.AddrFrom4(src), Dst: netip.AddrFrom4(dst)}
	payload := make([]byte, rng.IntN(60))
	for i := range payload {
		payload[i] = byte(rng.IntN(2)) // few flows
	}
	whole := true
	switch rng.IntN(6) {
	case 0:
		h.Frag, whole = 0x2000, false
	case 1:
		h.Frag, whole = 0x0007, false
	}
	hasPorts := slices.Contains([]uint8{6, 17, 33, 132}, p.Protocol)
	if hasPorts && whole && len(payload) >= 4 {
		p.Ports = binary.BigEndian.Uint32(payload)
	}
	return h.Bytes(payload), p
}

// Every decision of the program is the Chooser's, and so is what it keeps.
func TestBalance_decidesLikeTheOracle(t *testing.T) {
	const far = 1 << 62 // ns: more than any machine has been up, less than overflows
	for _, rule := range []string{"rb", "rrb", "drb", "letflow", "letflow:gap=1us", "drill", "drill:d=1,m=0", "drill:d=4,m=2", "drill:d=3,m=1", "drill:d=1,m=2"} {
		t.Run(rule, func(t *testing.T) {
			r := newBalanceRun(t, rule)
			rng := rand.New(rand.NewPCG(1, 5))
			for i := range maxBalanceSets * balance.MaxGroups {
				engines := make([]balance.Engine, ebpf.MustPossibleCPU())
				for k := range engines {
					engines[k].Random = rng.Uint64() | 1
				}
				r.put(t, r.Engines, uint32(i), engines)
			}
			empty := make(map[uint32]uint64)
			c := balance.Chooser{Rule: r.rule, Seed: r.seed, Pairs: make(map[uint32]uint32), Flowlets: make(map[uint32]balance.Flowlet),
				Wait: func(port uint32) uint64 { return empty[port] }}
			var chosen, plain uint64
			var groups [balance.MaxGroups]int
			for n := range 4000 {
				packet, p := randomPacket(rng)
				set := p.Dst >> 16 & 0xff
				if set > 3 || p.Dst>>8&0xff == 255 || p.Protocol == 4 {
					if hash := r.run(t, packet, 0); hash != cleared {
						t.Fatalf("packet %d, encapsulated or to one way, got hash %#x", n, hash)
					}
					plain++
					continue
				}
				var key [4]byte
				binary.BigEndian.PutUint32(key[:], p.Dst)
				var number uint32
				if err := r.Routes.Lookup(destination{32, key}, &number); err != nil {
					t.Fatal(err)
				}
				if port := 100*set + 1 + rng.Uint32N(64); r.rule.Kind == balance.DRILL {
					q := balanceQueue{Byte: 1, Room: 1, Empty: far + rng.Uint64N(10)}
					if rng.IntN(4) == 0 {
						q.Empty = 0
					}
					empty[port] = q.Empty
					r.put(t, r.Queues, port, &q)
				}
				engine := number
				if r.rule.Kind == balance.DRILL {
					group := c.Group(&r.sets[number], p).Group
					engine += maxBalanceSets * uint32(group)
					groups[group]++
				}
				e := r.engine(t, engine)
				got := r.run(t, packet, 0)
				chosen++
				now := uint64(0)
				if r.rule.Kind == balance.LetFlow { // the time at which the program ran
					place, _ := c.Place(p)
					var f balance.Flowlet
					if err := r.Flowlets.Lookup(place, &f); err != nil {
						t.Fatal(err)
					}
					if now = f.Last; now <= c.Flowlets[place].Last {
						t.Fatalf("packet %d: the flowlet's latest packet came at %d", n, now)
					}
				}
				want := c.Choose(&r.sets[number], &e, p, now)
				if got != want {
					t.Fatalf("packet %d to set %d: hash %#x, want %#x", n, number, got, want)
				}
				if after := r.engine(t, engine); after != e {
					t.Fatalf("packet %d: engine %+v, want %+v", n, after, e)
				}
			}
			var s BalanceStats
			if err := kernel.SumCounters(r.Counters, s.sums()...); err != nil {
				t.Fatal(err)
			}
			if want := (BalanceStats{Chosen: chosen, Plain: plain, Flowlets: c.Begun, Evicted: c.Evicted}); s != want {
				t.Errorf("%+v, want %+v", s, want)
			}
			if r.rule.Kind == balance.DRILL && (groups[1] == 0 || groups[2] == 0) {
				t.Errorf("%v packets by group", groups)
			}
			if r.rule.Kind == balance.LetFlow && c.Begun == 0 {
				t.Error("no flowlet has begun")
			}
		})
	}
}

// What is no IPv4 packet is left alone. One with a mark, an outer header, a VLAN's tag or
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
	six := make([]byte, 60)
	six[0] = 0x60
	if hash := r.run(t, six, 0); hash != 0 {
		t.Errorf("an IPv6 packet got hash %#x", hash)
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
