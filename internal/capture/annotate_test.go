package capture

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"weft/conga"
	"weft/encap"
	"weft/flowcell"
	"weft/internal/paths"
	"weft/topology"
)

var (
	start = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	here  = netip.MustParseAddr("10.0.0.2")
	there = netip.MustParseAddr("10.3.1.3")
)

// tcp returns a TCP segment.
func tcp(src, dst netip.Addr, seq uint32, payload int, id uint16) []byte {
	b := make([]byte, 40+payload)
	b[0], b[6], b[8], b[9] = 0x45, 0x40, 64, 6
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[4:], id)
	copy(b[12:], src.AsSlice())
	copy(b[16:], dst.AsSlice())
	binary.BigEndian.PutUint16(b[20:], 40000)
	binary.BigEndian.PutUint16(b[22:], 80)
	binary.BigEndian.PutUint32(b[24:], seq)
	b[32], b[33] = 5<<4, flowcell.FlagACK
	return b
}

// by puts a packet on a path.
func by(t *testing.T, f *topology.Topology, c encap.Carrier, path int, inner []byte) []byte {
	t.Helper()
	o, ok := paths.OuterTo(f, c, here, there, path)
	if !ok {
		t.Fatal("no such path")
	}
	b, err := o.Encapsulate(append(make([]byte, encap.MaxOverhead), inner...), 1)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func ethernet(b []byte) []byte {
	kind := []byte{8, 0}
	if b[0]>>4 == 6 {
		kind = []byte{0x86, 0xdd}
	}
	return append(append(make([]byte, 12), kind...), b...)
}

func fatTree(t *testing.T) *topology.Topology {
	t.Helper()
	f, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// By each path and carrier, the annotator finds the path that the sender has chosen, also of
// the same packet without its outer header, and of what a super-segment was cut into.
func TestAnnotator_findsThePath(t *testing.T) {
	f := fatTree(t)
	for _, c := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		a := NewAnnotator(NewTopology(f))
		for path := range 4 {
			inner := tcp(here, there, uint32(1000*path), 900, uint16(64*path))
			outer := by(t, f, c, path, inner)
			n := a.Note(&Record{At: start, Interface: "p0", Out: true, Link: LinkEthernet, Bytes: ethernet(outer), Length: 14 + len(outer)})
			set := f.Paths(mustHost(t, f, here), mustHost(t, f, there))
			want := f.Node(set.Bounce(path)).Name
			if n.Path != path || n.Bounce != want || n.Carrier != c.String() || n.Kind != KindData || n.Learned || !n.Numbered || int(n.Number.Cell()) != path {
				t.Errorf("%v, path %d: %s", c, path, n.String())
			}
			n = a.Note(&Record{At: start, Interface: "q0", Bytes: inner, Length: len(inner)})
			if n.Path != path || n.Bounce != want || !n.Learned || n.Carrier != "" {
				t.Errorf("%v, path %d, taken out: %s", c, path, n.String())
			}
			syn := tcp(here, there, uint32(1000*path), 0, uint16(1000+path))
			syn[33] = flowcell.FlagSYN
			outer = by(t, f, c, path, syn)
			a.Note(&Record{At: start, Interface: "p0", Out: true, Bytes: outer, Length: len(outer)})
			if n = a.Note(&Record{At: start, Interface: "q0", Bytes: syn, Length: len(syn)}); n.Path != path {
				t.Errorf("%v, path %d, SYN: %s", c, path, n.String())
			}
			part := tcp(here, there, uint32(1000*path+450), 450, 63)
			if n = a.Note(&Record{At: start, Interface: "q0", Bytes: part, Length: len(part)}); n.Path != path || n.Numbered {
				t.Errorf("%v, path %d, a part: %s", c, path, n.String())
			}
		}
		unknown := tcp(there, here, 5, 10, 0)
		if n := a.Note(&Record{At: start, Interface: "q0", Bytes: unknown, Length: len(unknown)}); n.Path != -1 {
			t.Errorf("a packet that nobody has seen before: %s", n.String())
		}
	}
}

func mustHost(t *testing.T, f *topology.Topology, a netip.Addr) topology.NodeID {
	t.Helper()
	id, ok := f.ByAddr(a)
	if !ok {
		t.Fatal(a)
	}
	return id
}

// What an interface has seen of a flow tells what was sent again; another interface tells by
// itself.
func TestAnnotator_seesWhatIsSentAgain(t *testing.T) {
	a, begin := NewAnnotator(nil), uint32(0xffffff00) // it wraps
	for i, step := range []struct {
		seq   uint32
		iface string
		again bool
	}{{begin, "p0", false}, {begin + 1000, "p0", false}, {begin, "p0", true}, {begin, "p1", false}, {begin + 2000, "p0", false}, {begin + 1000, "p0", true}} {
		b := tcp(here, there, step.seq, 1000, 0)
		if n := a.Note(&Record{At: start, Interface: step.iface, Out: true, Bytes: b, Length: len(b)}); n.Again != step.again {
			t.Errorf("step %d: again is %t, want %t", i, n.Again, step.again)
		}
	}
}

func TestAnnotator_reads(t *testing.T) {
	mark := tcp(here, there, 1, 100, conga.Mark{Tag: 5, Metric: 3}.Put())
	mark[1] = conga.MarkDSCP << 2
	ack := tcp(here, there, 1, 0, 64)
	probe, err := encap.AppendProbe(nil, encap.Probe{Kind: encap.ProbeRequest, Origin: here, Target: there})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		bytes []byte
		want  string
	}{
		{mark, "weft: point=device kind=data tag=5 metric=3"},
		{ack, "weft: point=device kind=ack"},
		{probe, "weft: point=device kind=probe"},
		{[]byte{1, 2, 3}, "weft: point=device kind=other"},
		{nil, "weft: point=device kind=other"},
	} {
		n := NewAnnotator(nil).Note(&Record{At: start, Interface: "p0", Bytes: c.bytes, Length: len(c.bytes)})
		if got := n.String(); got != c.want {
			t.Errorf("%x is %q, want %q", c.bytes, got, c.want)
		}
	}
}

// What a comment says of the resequencer comes back from a file.
func TestRestore(t *testing.T) {
	b := tcp(here, there, 1, 100, 65)
	r := Record{At: start, Interface: "weft-delivered", Point: PointDelivered, Bytes: b, Length: len(b), Hold: 383110 * time.Nanosecond, Cause: "timed-out"}
	n := NewAnnotator(nil).Note(&r)
	var back Record
	back.Restore(n.String())
	if back.Point != r.Point || back.Hold != r.Hold || back.Cause != r.Cause {
		t.Errorf("%q became %+v", n.String(), back)
	}
	back = Record{}
	back.Restore("another's comment")
	if back.Point != PointDevice || back.Cause != "" {
		t.Errorf("another's comment became %+v", back)
	}
}

// A super-segment that is too long for its header says 0 there.
func TestDecode_longSuperSegments(t *testing.T) {
	b := tcp(here, there, 1, 100, 65)
	b[2], b[3] = 0, 0
	l, err := new(Decoder).Decode(LinkIP, b, 100040)
	if err != nil || l.Packet.Payload != 100000 || l.Packet.Seq != 1 {
		t.Errorf("%+v, %v", l.Packet, err)
	}
}

func FuzzAnnotator(f *testing.F) {
	f.Add(byte(1), ethernet(tcp(here, there, 1, 10, 65)), 70)
	f.Add(byte(0), append([]byte{0x45, 0, 0, 80, 0, 0, 0x40, 0, 64, 4, 0, 0, 10, 0, 0, 2, 10, 4, 1, 1}, tcp(here, there, 1, 20, 65)...), 80)
	f.Add(byte(1), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x88, 0x47, 0, 1, 0, 64, 0, 1, 1, 64, 0x45}, 0)
	t, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(_ *testing.T, link byte, b []byte, length int) {
		a := NewAnnotator(NewTopology(t), 40000, 80)
		r := Record{At: start, Interface: "p0", Link: Link(link % 2), Bytes: b, Length: length & 0xfffff}
		for range 2 {
			n := a.Note(&r)
			if _, ok := ParseComment(n.String()); !ok {
				panic("not a comment: " + n.String())
			}
			(&Filter{Ports: []uint16{80}}).Match(&n)
			NewTimeline().Add(&r, &n)
		}
	})
}
