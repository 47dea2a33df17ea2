package fabric

import (
	"bytes"
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

	"weft/conga"
	"weft/encap"
	"weft/internal/balance"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// leafRun is the program of conga and luopan without a network. It runs at e0.0 of a fat-tree,
// whose port is the loopback device.
type leafRun struct {
	leafRunObjects
	leaf   LeafConfig
	tables leafTables
	oracle *balance.Leaf
	cpu    int
	now    uint64

	learned, unasked uint64

	context hashedContext // behind the latest packet's run

	colliding map[uint32][2]uint32 // by rack: ports of two flows of one place, from the first host to its first
}

type leafRunObjects struct {
	In        *ebpf.Program  `ebpf:"weft_balance"`
	Counters  *ebpf.Map      `ebpf:"counters"`
	Ports     *ebpf.Map      `ebpf:"ports"`
	Prefixes  *ebpf.Map      `ebpf:"prefixes"`
	Racks     *ebpf.Map      `ebpf:"racks"`
	Flows     *ebpf.Map      `ebpf:"flows"`
	Local     *ebpf.Map      `ebpf:"local"`
	To        *ebpf.Map      `ebpf:"to"`
	From      *ebpf.Map      `ebpf:"from"`
	Sampled   *ebpf.Map      `ebpf:"sampled"`
	Speakers  *ebpf.Map      `ebpf:"speakers"`
	Answering *ebpf.Map      `ebpf:"answering"`
	Engines   *ebpf.Map      `ebpf:"engines"`
	Lease     *ebpf.Map      `ebpf:"lease"`
	Clock     *ebpf.Variable `ebpf:"clock"`
}

const leafTau = time.Millisecond

// leafEngine is struct engine of bpf/leaf.c.
type leafEngine struct{ Random, Span, Answers uint64 }

func newLeafRun(t testing.TB, rule string) *leafRun {
	t.Helper()
	kerneltest.NeedRoot(t)
	const seed = 77
	parsed, err := balance.Parse(rule)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := leafSpec(parsed, seed, leafAge)
	if err != nil {
		t.Fatal(err)
	}
	takesHash(t, spec.Programs[leafProgWeftBalance].Instructions)
	r := &leafRun{oracle: balance.NewLeaf(parsed, seed, leafAge), now: 1e12}
	if err := kernel.Load(spec, &r.leafRunObjects, leafNeeds); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.In.Close()
		for _, m := range []*ebpf.Map{r.Counters, r.Ports, r.Prefixes, r.Racks, r.Flows, r.Local, r.To, r.From, r.Sampled, r.Speakers, r.Answering, r.Engines, r.Lease} {
			m.Close()
		}
	})
	top := kerneltest.Topology(t, "fat-tree:k=4")
	r.leaf = LeafConfig{Topology: top, Self: top.EdgeOf(kerneltest.Hosts(top)[0].ID)}
	r.fill(t)
	if parsed.Kind == balance.CONGA {
		for uplink := range r.oracle.Local {
			r.oracle.Local[uplink] = balance.NewDRE(leafTau, 1e9)
			r.put(t, r.Local, uint32(uplink), r.oracle.Local[uplink])
		}
	}
	r.colliding = make(map[uint32][2]uint32)
	own := r.prefixOf(t, ownRack)
	for number := r.rack() - 2; number <= r.rack(); number++ {
		r.colliding[number] = r.collide(t, hostIn(own, 2), hostIn(r.prefixOf(t, number), 2))
	}
	r.pin(t)
	r.oracle.Engine.Random = 0x1234567
	engines := make([]leafEngine, ebpf.MustPossibleCPU())
	for i := range engines {
		engines[i].Random = r.oracle.Engine.Random
	}
	r.put(t, r.Engines, uint32(0), engines)
	return r
}

// takesHash has the program write the mark `cleared` where it takes a packet's hash away, which a
// test run does not give.
func takesHash(t testing.TB, ins asm.Instructions) {
	t.Helper()
	n := 0
	for i := range ins {
		if ins[i].IsBuiltinCall() && asm.BuiltinFunc(ins[i].Constant) == asm.FnSetHashInvalid {
			ins[i] = asm.StoreImm(asm.R1, 8, cleared, asm.Word).WithMetadata(ins[i].Metadata)
			n++
		}
	}
	if n == 0 {
		t.Fatal("the program takes no hash")
	}
}

func (r *leafRun) put(t testing.TB, m *ebpf.Map, k, v any) {
	t.Helper()
	if err := m.Put(k, v); err != nil {
		t.Fatal(err)
	}
}

// fill gives the program the paths of the topology.
func (r *leafRun) fill(t testing.TB) {
	t.Helper()
	var err error
	if r.tables, err = r.leaf.tables(); err != nil {
		t.Fatal(err)
	}
	if _, err := fillLeaf(r.Prefixes, r.Racks, &r.tables); err != nil {
		t.Fatal(err)
	}
}

// collide returns the ports of two flows that have one place.
func (r *leafRun) collide(t testing.TB, src, dst netip.Addr) [2]uint32 {
	t.Helper()
	at := make(map[uint32]uint32)
	for ports := range uint32(10_000) {
		place, _ := r.oracle.Place(balance.Packet{Src: number4(src), Dst: number4(dst), Protocol: 6, Ports: ports})
		if first, ok := at[place]; ok {
			return [2]uint32{first, ports}
		}
		at[place] = ports
	}
	t.Fatal("no two flows have one place")
	return [2]uint32{}
}

func (r *leafRun) pin(t testing.TB) {
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

// run passes an IP packet through the program at the port of the rack's first host, or at one to
// the fabric.
func (r *leafRun) run(t testing.TB, toHosts bool, packet []byte, mark uint32) (verdict int32, out []byte) {
	t.Helper()
	p := leafPort{Room: 1520}
	if toHosts {
		p.ToHosts = 1
		p.Host = r.leaf.hostAt(r.leaf.Topology.Ports(r.leaf.Self)[0].Link)
	}
	r.put(t, r.Ports, uint32(loIndex), p)
	if err := r.Clock.Set(r.now); err != nil {
		t.Fatal(err)
	}
	o := ebpf.RunOptions{Data: ethernet(packet), DataOut: make([]byte, 2048), Context: hashedContext{Mark: mark}, ContextOut: &r.context}
	v, err := r.In.Run(&o)
	if errors.Is(err, ebpf.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return int32(v), o.DataOut[14:]
}

func (r *leafRun) random(t testing.TB) uint64 {
	t.Helper()
	var all []leafEngine
	if err := r.Engines.Lookup(uint32(0), &all); err != nil {
		t.Fatal(err)
	}
	return all[r.cpu].Random
}

func (r *leafRun) stats(t testing.TB) BalanceStats {
	t.Helper()
	s := BalanceStats{Leaf: &LeafStats{}}
	if err := kernel.SumCounters(r.Counters, append(s.sums(), s.Leaf.sums()...)...); err != nil {
		t.Fatal(err)
	}
	return s
}

// rack is that of another pod, with all paths.
func (r *leafRun) rack() uint32 { return uint32(len(r.tables.edges) - 1) }

func hostIn(prefix destination, last byte) netip.Addr {
	a := prefix.Addr
	a[3] = last
	return netip.AddrFrom4(a)
}

// prefixOf is that of a rack.
func (r *leafRun) prefixOf(t testing.TB, number uint32) destination {
	t.Helper()
	for d, n := range r.tables.prefixes {
		if n == number {
			return d
		}
	}
	t.Fatalf("rack %d has no prefix", number)
	return destination{}
}

func number4(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

// tcp is a packet of a flow with ports and payload.
func tcp(src, dst netip.Addr, ports uint32, tos byte, id uint16, payload int) []byte {
	return segment(src, dst, ports, tos, id, balance.LeafSegment{Payload: uint32(payload), Flags: tcpACK})
}

// The flags of TCP.
const (
	tcpFIN = 1
	tcpSYN = 2
	tcpRST = 4
	tcpACK = 16
)

func segment(src, dst netip.Addr, ports uint32, tos byte, id uint16, s balance.LeafSegment) []byte {
	segment := make([]byte, 20+s.Payload)
	binary.BigEndian.PutUint32(segment, ports)
	binary.BigEndian.PutUint32(segment[4:], s.Seq)
	binary.BigEndian.PutUint32(segment[8:], s.Ack)
	segment[12], segment[13] = 5<<4, s.Flags
	return kerneltest.IPv4{TOS: tos, ID: id, Frag: 0x4000, TTL: 60, Protocol: 6, Src: src, Dst: dst}.Bytes(segment)
}

func same[V comparable](t testing.TB, m *ebpf.Map, key uint32, want V, what string) {
	t.Helper()
	var got V
	if err := m.Lookup(key, &got); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Fatalf("%s %d at the program: %+v\nwant %+v", what, key, got, want)
	}
}

// Every decision of the program is the oracle's, and so is what it keeps and writes.
func TestLeaf_decidesLikeTheOracle(t *testing.T) {
	for _, rule := range []string{"conga:gap=1ms", "conga:gap=10us", "luopan", "luopan:d=1", "luopan:d=4", "luopan:d=3,expiry=1ms", "luopan:flowcell=4096"} {
		t.Run(rule, func(t *testing.T) {
			r := newLeafRun(t, rule)
			rng := rand.New(rand.NewPCG(3, 9))
			own := r.prefixOf(t, ownRack)
			whole := r.leaf.Topology
			var chosen uint64
			seq := uint32(1<<32 - 2e6)
			for n := range 6000 {
				r.now += rng.Uint64N(400_000)
				if rng.IntN(50) == 0 {
					r.now += rng.Uint64N(3e9)
				}
				if rng.IntN(300) == 0 { // a link fails, or all are repaired
					r.leaf.Topology = whole
					if rng.IntN(2) == 0 {
						links := slices.Collect(whole.Links())
						r.leaf.Topology = whole.Without(links[rng.IntN(len(links))].ID, links[rng.IntN(len(links))].ID)
					}
					r.fill(t)
				}
				number := r.rack() - rng.Uint32N(3)
				rack, there := r.tables.racks[number], r.prefixOf(t, number)
				here, away := hostIn(own, byte(2+rng.IntN(2))), hostIn(there, byte(2+rng.IntN(2)))
				ports := rng.Uint32N(4)<<16 | 80
				if rng.IntN(8) == 0 { // flows whose places others have
					here, away, ports = hostIn(own, 2), hostIn(there, 2), r.colliding[number][rng.IntN(2)]
				}
				switch {
				case rng.IntN(3) > 0:
					s := balance.LeafSegment{Seq: seq, Payload: rng.Uint32N(1400), Flags: tcpACK}
					switch seq += rng.Uint32N(1400); rng.IntN(40) {
					case 0:
						s.Flags = tcpSYN
						s.Payload = 0
					case 1:
						s.Flags |= tcpRST
					case 2:
						s.Flags |= tcpFIN
					case 3:
						s.Seq += 5_000_000 // beyond any window
						seq = s.Seq
					case 4:
						s.Seq -= 5_000_000
					}
					if r.send(t, rack, here, away, ports, s) {
						chosen++
					}
				case r.oracle.Rule.Kind == balance.CONGA:
					var m *conga.Mark
					if rng.IntN(4) > 0 {
						m = &conga.Mark{Feedback: rng.IntN(2) == 0, Tag: uint8(rng.IntN(4)), Metric: uint8(rng.IntN(8))}
					}
					s := balance.LeafSegment{Ack: r.some(rng, away, here, ports<<16|ports>>16), Payload: 9, Flags: tcpACK}
					if rng.IntN(8) == 0 {
						s.Flags = tcpSYN
					}
					r.hear(t, number, away, here, ports<<16|ports>>16, s, m)
				default:
					r.learn(t, rng, number, here, away)
				}
				if got := r.random(t); got != r.oracle.Engine.Random {
					t.Fatalf("step %d: random %#x, want %#x", n, got, r.oracle.Engine.Random)
				}
			}
			s := r.stats(t)
			o := r.oracle
			if s.Chosen != chosen || s.Flowlets != o.Begun || s.Evicted != o.Evicted || s.Leaf.Shared != o.Shared || s.Leaf.Guided != o.Guided ||
				s.Leaf.Heard != o.Heard || s.Leaf.Unproven != o.Unproven || chosen == 0 || o.Begun == 0 || o.Shared == 0 && rule != "conga:gap=10us" {
				t.Errorf("%+v, %+v, want %d chosen, %+v", s, s.Leaf, chosen, o)
			}
			if o.Rule.Kind == balance.Luopan && (o.Guided < 50 || s.Leaf.Learned < 50) || o.Rule.Kind == balance.CONGA && (o.Heard < 50 || o.Unproven < 50) {
				t.Errorf("too little has been tried: %+v, %+v", s.Leaf, o)
			}
		})
	}
}

// send compares what becomes of a packet of a host's.
func (r *leafRun) send(t *testing.T, rack *balance.LeafRack, src, dst netip.Addr, ports uint32, s balance.LeafSegment) (chosen bool) {
	t.Helper()
	packet := segment(src, dst, ports, 2, 7, s)
	verdict, out := r.run(t, true, packet, 0)
	if verdict != kernel.TCUnspec {
		t.Fatalf("verdict %d", verdict)
	}
	if rack.N == 0 {
		if !bytes.Equal(out, packet) {
			t.Fatalf("a packet without a path became %x", out)
		}
		return false
	}
	o := r.oracle
	if o.Rule.Kind == balance.Luopan {
		var row balance.LeafSamples
		if err := r.Sampled.Lookup(rack.Number, &row); err != nil {
			t.Fatal(err)
		}
		i := -1
		o.Ask(rack, src.As4(), dst.As4(), r.now, func() uint64 { i++; return row.Token[i] })
		want := o.Round[rack.Number]
		for i := range want.Path { // the program keeps old ones
			if want.Token[i] == 0 {
				want.Path[i] = row.Path[i]
			}
		}
		if row != want {
			t.Fatalf("samples %+v\nwant %+v", row, want)
		}
		o.Round[rack.Number] = want
	}
	p := balance.Packet{Src: number4(src), Dst: number4(dst), Protocol: 6, Ports: ports}
	path := o.Choose(rack, p, uint32(len(packet)), r.now)
	inner := packet
	if o.Rule.Kind == balance.CONGA {
		o.Departs(rack.Number, p, s)
		id := o.Mark(rack.Number, rack.Tag[path], r.now).Put()
		inner = segment(src, dst, ports, conga.MarkDSCP<<2|2, id, s)
		uplink := uint32(rack.Uplink[rack.Tag[path]])
		same(t, r.Local, uplink, o.Local[uplink], "load of uplink")
		same(t, r.From, rack.Number, o.From[rack.Number], "reports for rack")
	}
	outer := kerneltest.IPv4{TOS: inner[1], ID: binary.BigEndian.Uint16(inner[4:]), Frag: 0x4000, TTL: 64, Protocol: 4,
		Src: src, Dst: netip.AddrFrom4(rack.Bounce[path])}
	if want := outer.Bytes(inner); !bytes.Equal(out, want) {
		t.Fatalf("by path %d:\ngot  %x\nwant %x", path, out[:40], want[:40])
	}
	place, _ := o.Place(p)
	same(t, r.Flows, place, o.Flows[place], "flow")
	return true
}

// some is a number that an acknowledgement may have: that of the flow's window, mostly.
func (r *leafRun) some(rng *rand.Rand, src, dst netip.Addr, ports uint32) uint32 {
	place, _ := r.oracle.Place(balance.Packet{Src: number4(dst), Dst: number4(src), Protocol: 6, Ports: ports<<16 | ports>>16})
	f := r.oracle.Flows[place]
	return f.Low - 10 + rng.Uint32N(min(f.Highest-f.Low, 5000)+20)
}

// hear compares what a packet of another rack's does, with a mark or without.
func (r *leafRun) hear(t *testing.T, number uint32, src, dst netip.Addr, ports uint32, s balance.LeafSegment, m *conga.Mark) {
	t.Helper()
	o := r.oracle
	p := balance.Packet{Src: number4(src), Dst: number4(dst), Protocol: 6, Ports: ports}
	packet := segment(src, dst, ports, 1, 1, s)
	if m != nil {
		packet = segment(src, dst, ports, conga.MarkDSCP<<2|1, m.Put(), s)
		o.Hear(number, p, s, *m, r.now)
	} else {
		o.Acknowledged(number, p, s, r.now)
	}
	verdict, out := r.run(t, false, packet, 0)
	place, _ := o.Place(balance.Packet{Src: p.Dst, Dst: p.Src, Protocol: 6, Ports: ports<<16 | ports>>16})
	same(t, r.Flows, place, o.Flows[place], "flow that is acknowledged")
	if want := segment(src, dst, ports, 1, 1, s); verdict != kernel.TCUnspec || !bytes.Equal(out, want) {
		t.Fatalf("a host gets %x, want %x", out, want)
	}
	same(t, r.To, number, o.To[number], "row to rack")
	same(t, r.From, number, o.From[number], "row from rack")
}

// learn compares what an answer does: a true one, or one that is wrong in one thing.
func (r *leafRun) learn(t *testing.T, rng *rand.Rand, number uint32, here, away netip.Addr) {
	t.Helper()
	o := r.oracle
	row := o.Round[number]
	which := rng.IntN(o.Rule.Samples)
	a := balance.LeafAnswer{From: row.Host, To: row.Source, Token: row.Token[which], Path: row.Path[which],
		Queue: uint8(rng.IntN(4)), Meters: uint8(rng.IntN(3)), Marked: rng.IntN(8) == 0}
	switch rng.IntN(8) {
	case 0:
		a.Token++
	case 1:
		a.Path ^= 1
	case 2:
		a.From = away.As4()
	case 3:
		a.To = here.As4()
	}
	if a.From == [4]byte{} || a.To == [4]byte{} {
		return // there was no round
	}
	s, err := encap.AppendSample(nil, encap.Sample{Path: a.Path, ACK: true, Queue: a.Queue, Meters: a.Meters, Marked: a.Marked,
		Token: a.Token, Received: 5, From: netip.AddrFrom4(a.From), To: netip.AddrFrom4(a.To)})
	if err != nil {
		t.Fatal(err)
	}
	verdict, _ := r.run(t, false, s, 0)
	learned := r.stats(t).Leaf
	if o.Learn(number, a, r.now) {
		r.learned++
	} else {
		r.unasked++
	}
	if verdict != kernel.TCShot || learned.Learned != r.learned || learned.Unasked != r.unasked {
		t.Fatalf("an answer %+v: verdict %d, %+v, want %d learned, %d unasked", a, verdict, learned, r.learned, r.unasked)
	}
	same(t, r.Sampled, number, o.Round[number], "samples of rack")
}

// A sample that the program makes of a packet's copy is what package encap writes, by the path
// that was asked about. The leaf at the other end answers as package encap does.
func TestLeaf_samples(t *testing.T) {
	r := newLeafRun(t, "luopan")
	number := r.rack()
	rack := r.tables.racks[number]
	here, away := hostIn(r.prefixOf(t, ownRack), 2), hostIn(r.prefixOf(t, number), 3)
	for _, payload := range []int{0, 10, 1400} {
		r.now += 1e9
		packet := tcp(here, away, 5<<16|80, 0, 7, payload)
		r.run(t, true, packet, 0)
		var row balance.LeafSamples
		if err := r.Sampled.Lookup(number, &row); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			verdict, out := r.run(t, true, packet, 0x77660000|uint32(i))
			want, err := encap.AppendSample(nil, encap.Sample{Path: row.Path[i], Token: row.Token[i], From: here, To: away})
			if err != nil {
				t.Fatal(err)
			}
			// The reserved word is what completing a former checksum there leaves as it is.
			part := slices.Clone(out[20+20+8+12 : 20+encap.SampleLen])
			half := slices.Clone(part[16:18])
			if sum := ^kerneltest.OnesSum(part); !bytes.Equal(half, binary.BigEndian.AppendUint16(nil, sum)) {
				t.Errorf("the reserved word %x becomes %04x", half, sum)
			}
			if got, err := encap.ParseSample(out[20:]); err != nil || got.Token != row.Token[i] {
				t.Errorf("%+v, %v", got, err)
			}
			copy(want[encap.SampleLen-4:], half)
			copy(want[26:28], out[46:48]) // the checksum, which ParseSample has found good
			r.wantOuter(t, verdict, out, here, netip.AddrFrom4(rack.Bounce[row.Path[i]]), want)
		}
	}
	for i, tos := range []byte{2, 3} {
		asked, err := encap.AppendSample(nil, encap.Sample{Path: 2, Token: 0x0123456789abcdef, Queue: 5, Meters: 2, From: away, To: here})
		if err != nil {
			t.Fatal(err)
		}
		asked[1] = tos
		verdict, out := r.run(t, false, asked, 0)
		want := bytes.Clone(asked)
		binary.BigEndian.PutUint16(want[10:], 0)
		binary.BigEndian.PutUint16(want[10:], ^kerneltest.OnesSum(want[:20]))
		if _, err := encap.AnswerSample(want, time.Duration(r.now)); err != nil {
			t.Fatal(err)
		}
		r.wantOuter(t, verdict, out, here, netip.AddrFrom4(rack.Bounce[2]), want)
		if s := r.stats(t); s.Leaf.Answered != uint64(i+1) || s.Leaf.Unanswered != 0 {
			t.Errorf("%+v", s.Leaf)
		}
	}
}

func (r *leafRun) wantOuter(t *testing.T, verdict int32, out []byte, from, bounce netip.Addr, inner []byte) {
	t.Helper()
	want := kerneltest.IPv4{TOS: 2, Frag: 0x4000, TTL: 64, Protocol: 4, Src: from, Dst: bounce}.Bytes(inner)
	if verdict != kernel.TCUnspec || !bytes.Equal(out, want) {
		t.Fatalf("verdict %d\ngot  %x\nwant %x", verdict, out, want)
	}
}
