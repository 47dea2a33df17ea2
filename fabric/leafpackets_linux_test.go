package fabric

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weft/conga"
	"weft/encap"
	"weft/internal/balance"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// What is no host's own packet to another rack is left alone.
func TestLeaf_leavesAlone(t *testing.T) {
	r := newLeafRun(t, "conga")
	own, there := r.prefixOf(t, ownRack), r.prefixOf(t, r.rack())
	here, away := hostIn(own, 2), hostIn(there, 3)
	good := tcp(here, away, 5<<16|80, 0, 7, 100)
	if _, out := r.run(t, true, good, 0); len(out) != len(good)+leafOuter {
		t.Fatalf("a packet to another rack became %x", out)
	}
	if r.context.Mark != 0 {
		t.Fatalf("a packet with a path has mark %#x", r.context.Mark)
	}
	expired := bytes.Clone(good)
	expired[8] = 1
	for what, c := range map[string]struct {
		packet []byte
		mark   uint32
	}{
		"with a mark":        {good, 5},
		"at its last hop":    {expired, 0},
		"too long":           {tcp(here, away, 5<<16|80, 0, 7, 1500-40+1), 0},
		"within the rack":    {tcp(here, hostIn(own, 3), 5<<16|80, 0, 7, 100), 0},
		"to nobody's rack":   {tcp(here, netip.MustParseAddr("192.0.2.1"), 5<<16|80, 0, 7, 100), 0},
		"of another's":       {tcp(away, away, 5<<16|80, 0, 7, 100), 0},
		"encapsulated":       {kerneltest.IPv4{TTL: 64, Protocol: 4, Src: here, Dst: away}.Bytes(good), 0},
		"of no known header": {append([]byte{0x42}, good[1:]...), 0},
	} {
		before := r.stats(t)
		verdict, out := r.run(t, true, c.packet, c.mark)
		after := r.stats(t)
		if verdict != kernel.TCUnspec || !bytes.Equal(out, c.packet) || after.Chosen != before.Chosen {
			t.Errorf("%s: verdict %d, %x", what, verdict, out)
		}
		if r.context.Mark != cleared {
			t.Errorf("%s: routes take a hash that others have made", what)
		}
		if after.Plain+after.Leaf.TooLong != before.Plain+before.Leaf.TooLong+1 {
			t.Errorf("%s is not counted: %+v, %+v", what, after, after.Leaf)
		}
	}
	if verdict, out := r.run(t, false, good, 0); verdict != kernel.TCUnspec || !bytes.Equal(out, good) {
		t.Errorf("a packet from the fabric became %x", out)
	}
}

// A plain host cannot write marks, in anybody's name. One that encapsulates by itself reads
// those that come to it.
func TestLeaf_marksOfHosts(t *testing.T) {
	r := newLeafRun(t, "conga")
	own, there := r.prefixOf(t, ownRack), r.prefixOf(t, r.rack())
	here, away := hostIn(own, 2), hostIn(there, 3)
	lie := conga.Mark{Feedback: true, Tag: 1, Metric: 7}.Put()
	for _, src := range []netip.Addr{away, hostIn(own, 3)} {
		_, out := r.run(t, true, tcp(src, hostIn(own, 3), 1, conga.MarkDSCP<<2, lie, 10), 0)
		if want := tcp(src, hostIn(own, 3), 1, 0, 1, 10); !bytes.Equal(out, want) {
			t.Errorf("a mark of %v's became %x, want %x", src, out, want)
		}
	}
	marked := tcp(away, here, 80<<16|5, conga.MarkDSCP<<2, conga.Mark{Tag: 1, Metric: 7}.Put(), 10)
	if _, out := r.run(t, false, marked, 0); !bytes.Equal(out, tcp(away, here, 80<<16|5, 0, 1, 10)) {
		t.Errorf("a plain host gets %x", out)
	}
	r.run(t, true, kerneltest.IPv4{TTL: 64, Protocol: 4, Src: here, Dst: away}.Bytes(tcp(here, away, 5<<16|80, 0, 7, 10)), 0)
	if _, out := r.run(t, false, marked, 0); !bytes.Equal(out, marked) {
		t.Errorf("a host that encapsulates gets %x, want %x", out, marked)
	}
	r.now += 11e9
	if _, out := r.run(t, false, marked, 0); bytes.Equal(out, marked) {
		t.Error("a host that has not encapsulated for long gets a mark")
	}
	if s := r.stats(t); s.Leaf.Unproven != 3 || s.Leaf.Heard != 0 {
		t.Errorf("%+v", s.Leaf)
	}
}

// A host's IP-in-IP packet is in its own name, and so is what a switch finds inside. Else
// marks inside would count as another's.
func TestLeaf_encapsulatesInItsOwnName(t *testing.T) {
	for _, rule := range []string{"conga", "luopan"} {
		r := newLeafRun(t, rule)
		own, there := r.prefixOf(t, ownRack), r.prefixOf(t, r.rack())
		host := r.leaf.hostAt(r.leaf.Topology.Ports(r.leaf.Self)[0].Link)
		here, embedded := netip.AddrFrom4(host[0]), netip.AddrFrom4(host[1])
		beside, away := hostIn(own, 3), hostIn(there, 3)
		spine := netip.AddrFrom4(r.tables.racks[r.rack()].Bounce[0])
		lie := func(src netip.Addr) []byte {
			return tcp(src, away, 5<<16|80, conga.MarkDSCP<<2, conga.Mark{Feedback: true, Tag: 1, Metric: 7}.Put(), 10)
		}
		in := func(src, dst netip.Addr, inner []byte) []byte {
			return kerneltest.IPv4{TTL: 64, Protocol: 4, Src: src, Dst: dst}.Bytes(inner)
		}
		fragment := in(here, spine, lie(here))
		fragment[6] = 0x20
		spoofed := uint64(0)
		for what, c := range map[string]struct {
			packet []byte
			passes bool
		}{
			"its own":                   {in(here, spine, lie(here)), true},
			"its embedded stack's":      {in(embedded, spine, lie(embedded)), true},
			"to a host, as a tunnel":    {in(here, away, lie(beside)), true},
			"of another rack":           {in(away, spine, lie(away)), false},
			"of a neighbour":            {in(beside, spine, lie(beside)), false},
			"of nobody":                 {in(netip.IPv4Unspecified(), spine, lie(netip.IPv4Unspecified())), false},
			"of another's inside":       {in(here, spine, lie(away)), false},
			"of a neighbour's to hosts": {in(beside, away, lie(beside)), false},
			"in two outer headers":      {in(here, spine, in(here, spine, lie(here))), false},
			"in fragments":              {fragment, false},
			"without anything inside":   {in(here, spine, nil), false},
		} {
			verdict, out := r.run(t, true, c.packet, 0)
			if !c.passes {
				spoofed++
			}
			if (verdict == kernel.TCUnspec) != c.passes || (verdict == kernel.TCShot) == c.passes || !bytes.Equal(out[:len(c.packet)], c.packet) {
				t.Errorf("%s, %s: verdict %d, %x", rule, what, verdict, out)
			}
			if s := r.stats(t); s.Leaf.Spoofed != spoofed {
				t.Errorf("%s, %s: %d spoofed, want %d", rule, what, s.Leaf.Spoofed, spoofed)
			}
		}
		var at uint64
		for _, a := range []netip.Addr{beside, away} {
			if err := r.Speakers.Lookup(a.As4(), &at); err == nil {
				t.Errorf("%s: %v is taken for one that encapsulates", rule, a)
			}
		}
		if err := r.Speakers.Lookup(here.As4(), &at); err != nil || at != r.now {
			t.Errorf("%s: %d, %v", rule, at, err)
		}
	}
}

// Who knows a connection of the rack's, and not what is in flight, moves nothing by marks.
func TestLeaf_forgedMarks(t *testing.T) {
	r := newLeafRun(t, "conga")
	here, away := hostIn(r.prefixOf(t, ownRack), 2), hostIn(r.prefixOf(t, r.rack()), 3)
	const low, sent = 3e9, 1000
	r.run(t, true, segment(here, away, 5<<16|80, 0, 7, balance.LeafSegment{Seq: low, Payload: sent, Flags: tcpACK}), 0)
	mark := func(ack uint32, flags uint8, m conga.Mark) {
		r.run(t, false, segment(away, here, 80<<16|5, conga.MarkDSCP<<2, m.Put(), balance.LeafSegment{Ack: ack, Flags: flags}), 0)
	}
	for n := range uint32(4096) {
		mark(n<<20+77, tcpACK, conga.Mark{Feedback: true, Tag: 1, Metric: 7})
		mark(n<<20+77, tcpACK, conga.Mark{Tag: 1, Metric: 7})
	}
	mark(low, 0, conga.Mark{Feedback: true, Tag: 1, Metric: 7})
	var to balance.LeafTo
	var from balance.LeafFrom
	if err := r.To.Lookup(r.rack(), &to); err != nil || to != (balance.LeafTo{}) {
		t.Errorf("guesses have moved %+v, %v", to, err)
	}
	if err := r.From.Lookup(r.rack(), &from); err != nil || from.News != 0 {
		t.Errorf("guesses have moved %+v, %v", from, err)
	}
	mark(low+sent, tcpACK, conga.Mark{Feedback: true, Tag: 1, Metric: 7})
	if err := r.To.Lookup(r.rack(), &to); err != nil || to.Metric[1] != 7 {
		t.Errorf("the receiver's report does not count: %+v, %v", to, err)
	}
	mark(low, tcpACK, conga.Mark{Feedback: true, Tag: 1, Metric: 0})
	if s := r.stats(t); s.Leaf.Heard != 1 || s.Leaf.Unproven != 2*4096+2 {
		t.Errorf("%+v", s.Leaf)
	}
}

// Answers to others' samples have a bound.
func TestLeaf_answersAreBounded(t *testing.T) {
	r := newLeafRun(t, "luopan")
	here, away := hostIn(r.prefixOf(t, ownRack), 2), hostIn(r.prefixOf(t, r.rack()), 3)
	asked, err := encap.AppendSample(nil, encap.Sample{Path: 1, Token: 5, From: away, To: here})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 1000 {
		want := int32(kernel.TCUnspec)
		if n >= 400 {
			want = kernel.TCShot
		}
		if verdict, _ := r.run(t, false, asked, 0); verdict != want {
			t.Fatalf("verdict %d of sample %d", verdict, n)
		}
	}
	if s := r.stats(t); s.Leaf.Answered != 400 || s.Leaf.Unanswered != 600 {
		t.Errorf("within 10 ms %+v", s.Leaf)
	}
	// Racks have each their own bound, and one for all.
	other, err := encap.AppendSample(nil, encap.Sample{Path: 1, Token: 5, From: hostIn(r.prefixOf(t, r.rack()-1), 3), To: here})
	if err != nil {
		t.Fatal(err)
	}
	if verdict, _ := r.run(t, false, other, 0); verdict != kernel.TCUnspec || r.stats(t).Leaf.Answered != 401 {
		t.Errorf("a rack loses by another's samples: verdict %d", verdict)
	}
	engines := make([]leafEngine, ebpf.MustPossibleCPU())
	for i := range engines {
		engines[i] = leafEngine{Random: 1, Span: r.now, Answers: 4000}
	}
	r.put(t, r.Engines, uint32(0), engines)
	if verdict, _ := r.run(t, false, other, 0); verdict != kernel.TCShot {
		t.Errorf("above the bound of all: verdict %d", verdict)
	}
	r.now += 11e6
	r.run(t, false, asked, 0)
	if s := r.stats(t); s.Leaf.Answered != 402 {
		t.Errorf("after 10 ms %+v", s.Leaf)
	}
}

// A packet of any bytes from the fabric goes on or is an answer, and a host's goes on or is
// IP-in-IP.
func FuzzLeaf(f *testing.F) {
	runs := []*leafRun{newLeafRun(f, "conga"), newLeafRun(f, "luopan")}
	here, away := hostIn(runs[0].prefixOf(f, ownRack), 2), hostIn(runs[0].prefixOf(f, 7), 3)
	f.Add(tcp(here, away, 5<<16|80, 0, 7, 100), true)
	f.Add(tcp(away, here, 5<<16|80, conga.MarkDSCP<<2, 0x8001, 100), false)
	s, _ := encap.AppendSample(nil, encap.Sample{Path: 1, Token: 5, From: away, To: here})
	f.Add(s, false)
	f.Add(make([]byte, 21), true)
	f.Fuzz(func(t *testing.T, packet []byte, toHosts bool) {
		if len(packet) < 20 || len(packet) > 1500 {
			return
		}
		for _, r := range runs {
			r.now += 1e6
			verdict, _ := r.run(t, toHosts, packet, 0)
			if verdict != kernel.TCUnspec && (toHosts && packet[9] != 4 || verdict != kernel.TCShot) {
				t.Errorf("verdict %d", verdict)
			}
		}
	})
}

// BenchmarkLeaf is the cost of a host's packet at a leaf: of one in a flowlet or flowcell, of
// one that begins a flowlet, and of one that stays plain. A test run leaves its packet with an
// outer header, which the next one would leave alone. So each packet is a run of its own, and
// costs more than where many follow each other.
func BenchmarkLeaf(b *testing.B) {
	for _, c := range []struct {
		name, rule string
		plain      bool
	}{{"conga/same", "conga:gap=1m", false}, {"conga/flowlet", "conga:gap=1us", false}, {"luopan/same", "luopan", false}, {"plain", "conga", true}} {
		b.Run(c.name, func(b *testing.B) {
			r := newLeafRun(b, c.rule)
			here, away := hostIn(r.prefixOf(b, ownRack), 2), hostIn(r.prefixOf(b, r.rack()), 3)
			if c.plain {
				away = hostIn(r.prefixOf(b, ownRack), 3)
			}
			frame := ethernet(tcp(here, away, 5<<16|80, 0, 7, 1400))
			r.put(b, r.Ports, uint32(loIndex), leafPort{ToHosts: 1, Room: 1520})
			var total time.Duration
			for range b.N {
				_, each, err := r.In.Benchmark(frame, 1, nil)
				if err != nil {
					b.Fatal(err)
				}
				total += each
			}
			b.ReportMetric(float64(total)/float64(b.N), "ns/packet")
		})
	}
}
