package fabric

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"weft/conga"
	"weft/encap"
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
	if s := r.stats(t); s.Leaf.Unproven != 2 || s.Leaf.Heard != 0 {
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
	for range 1000 {
		r.run(t, false, asked, 0)
	}
	if s := r.stats(t); s.Leaf.Answered != 400 || s.Leaf.Unanswered != 600 {
		t.Errorf("within 10 ms %+v", s.Leaf)
	}
	r.now += 11e6
	r.run(t, false, asked, 0)
	if s := r.stats(t); s.Leaf.Answered != 401 {
		t.Errorf("after 10 ms %+v", s.Leaf)
	}
}

// A packet of any bytes from the fabric goes on or is an answer, and a host's goes on.
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
			if verdict != kernel.TCUnspec && (toHosts || verdict != kernel.TCShot) {
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
