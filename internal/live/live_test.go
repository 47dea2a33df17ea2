package live

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/topology"
)

// day is a moment of no meaning.
var day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fatTree is a Fabric of a computed topology, with links of 20 Mbit/s.
func fatTree(t testing.TB, spec string) *Fabric {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	f := &Fabric{Version: 1, Kind: KindLab, Name: "test"}
	for n := range top.Nodes() {
		f.Nodes = append(f.Nodes, Node{Name: n.Name, Tier: int(n.Layer), Address: n.Addr.String()})
	}
	for l := range top.Links() {
		f.Links = append(f.Links, Link{Name: top.LinkName(l.ID), A: int(l.A), B: int(l.B), Rate: 20e6, Room: 75000})
	}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	return f
}

func known(bytes, packets, drops, queue uint64) Counters {
	return Counters{Known: true, Bytes: bytes, Packets: packets, Drops: drops, Queue: queue}
}

func TestMeter_ratesOfLinks(t *testing.T) {
	f := fatTree(t, "fat-tree:k=2")
	var m Meter
	at := func(seconds float64, c Counters) *Frame {
		s := Sample{At: day.Add(time.Duration(seconds * float64(time.Second))), Links: make([]LinkSample, len(f.Links))}
		for i := range s.Links {
			s.Links[i] = LinkSample{State: Working, Up: c, Down: known(7, 7, 7, 7)}
		}
		return m.Next(f, s)
	}
	first := at(0, known(1000, 1<<32-10, 1<<32-1, 5000))
	if l := first.Links[0]; l.Up != (Flow{Queue: 5000}) || first.Seconds != 0 || len(first.Events) != 0 {
		t.Errorf("the first frame knows %+v", l)
	}
	second := at(0.5, known(1000+625000, 80, 9, 6000)) // 10 Mbit/s; 90 packets sent, 10 dropped, over the edge
	want := Flow{Rate: 10e6, Use: 0.5, Queue: 6000, Drops: 10, Loss: 0.1}
	if l := second.Links[0]; l.Up != want || l.Down != (Flow{Queue: 7}) {
		t.Errorf("up %+v, want %+v; down %+v", l.Up, want, l.Down)
	}
	if want := (Total{Delivered: 0, Drops: 10 * uint64(len(f.Links)), Queue: 6000, Use: 0.5}); second.Total != want {
		t.Errorf("total %+v, want %+v", second.Total, want)
	}
	if n := len(second.Events); n != len(f.Links) || second.Events[0].Kind != EventDrops {
		t.Errorf("%d events, want one for each link that drops: %v", n, second.Events)
	}
	if anew := at(1, known(10, 1, 0, 0)); anew.Links[0].Up != (Flow{}) {
		t.Errorf("counters that begin anew say %+v", anew.Links[0].Up)
	}
	if again := at(1, known(10, 1, 0, 0)); again.Seconds != 0 {
		t.Errorf("a sample that is not newer has %v s", again.Seconds)
	}
}

// A direction that was read at another moment than the sample has its own rate.
func TestMeter_ownMoments(t *testing.T) {
	f := fatTree(t, "fat-tree:k=2")
	var m Meter
	s := Sample{At: day, Links: make([]LinkSample, len(f.Links))}
	s.Links[0].Up = known(0, 0, 0, 0)
	m.Next(f, s)
	s = Sample{At: day.Add(time.Second), Links: make([]LinkSample, len(f.Links))}
	s.Links[0].Up = known(1e6, 0, 0, 0)
	s.Links[0].Up.At = day.Add(2 * time.Second)
	if got := m.Next(f, s).Links[0].Up.Rate; got != 4e6 {
		t.Errorf("rate %v, want 4e6", got)
	}
}

func TestMeter_events(t *testing.T) {
	f := fatTree(t, "fat-tree:k=2")
	var m Meter
	n := 0
	frame := func(state State, fails []Failure, sus []Suspect, verdict string) (kinds []string) {
		n++
		s := Sample{At: day.Add(time.Duration(n) * time.Second), Links: make([]LinkSample, len(f.Links)), Failures: fails, Suspects: sus,
			Hosts: []Host{{Name: "h0.0.2", Verdict: verdict}}}
		s.Links[2].State = state
		for _, e := range m.Next(f, s, Event{Kind: EventMark}).Events[1:] {
			kinds = append(kinds, e.Kind+" "+e.What)
		}
		return kinds
	}
	link := f.Links[2].Name
	sus := []Suspect{{Host: "h0.0.2", Places: []string{link, "a0.1"}}}
	for i, c := range []struct {
		got, want []string
	}{
		{frame(Working, nil, nil, "sprayed"), nil},
		{frame(Broken, []Failure{{link, "loud"}}, nil, "sprayed"), []string{"fail " + link, "down " + link}},
		{frame(Broken, []Failure{{link, "loud"}}, sus, "degraded"), []string{"suspect " + link, "verdict h0.0.2"}},
		{frame(Working, nil, nil, "degraded"), []string{"heal " + link, "up " + link, "trusted " + link}},
		{frame(Working, nil, nil, "degraded"), nil},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("frame %d: events %q, want %q", i, c.got, c.want)
		}
	}
}

func TestMeter_connsAndWays(t *testing.T) {
	f := fatTree(t, "fat-tree:k=2")
	var m Meter
	m.Next(f, Sample{At: day,
		Conns: []ConnSample{{From: "a", Local: "1", Remote: "2", Sent: 0, Received: 500, Resent: 3}},
		Ways:  []WaySample{{Host: "a", Bounce: "x"}, {Host: "a", Bounce: "y", Bytes: 100}}})
	got := m.Next(f, Sample{At: day.Add(2 * time.Second),
		Conns: []ConnSample{{From: "b", Local: "9", Remote: "2", Sent: 5}, {From: "a", Local: "1", Remote: "2", Sent: 1e6, Received: 500, Resent: 5}},
		Ways:  []WaySample{{Host: "a", Bounce: "y", Bytes: 100 + 3e6}, {Host: "a", Bounce: "x", Bytes: 1e6}}})
	if c := got.Conns; len(c) != 2 || c[0].From != "a" || c[0].Sends != 4e6 || c[0].Gets != 0 || c[0].Resent != 2 || c[0].AllResent != 5 || c[1].Sends != 0 {
		t.Errorf("connections %+v", c)
	}
	if w := got.Ways; len(w) != 2 || w[0].Bounce != "x" || w[0].Rate != 4e6 || w[0].Share != 0.25 || w[1].Share != 0.75 {
		t.Errorf("ways %+v", w)
	}
}

func TestMeter_bounds(t *testing.T) {
	f := fatTree(t, "fat-tree:k=2")
	s := Sample{At: day, Links: make([]LinkSample, 3), Trouble: strings.Repeat("ä", 400)} // of another fabric
	for i := range MaxConns + 5 {
		s.Conns = append(s.Conns, ConnSample{From: "a", Local: fmt.Sprint(i)})
	}
	s.Suspects = make([]Suspect, MaxSuspects+2)
	got := new(Meter).Next(f, s)
	if len(got.Links) != len(f.Links) || len(got.Conns) != MaxConns || len(got.Suspects) != MaxSuspects || got.More != 7 {
		t.Errorf("%d links, %d connections, %d suspects, %d more", len(got.Links), len(got.Conns), len(got.Suspects), got.More)
	}
	if !strings.HasSuffix(got.Trouble, "ä…") || len(got.Trouble) > maxText+3 {
		t.Errorf("a text of %d bytes ends with %q", len(got.Trouble), got.Trouble[len(got.Trouble)-4:])
	}
}

func TestRound(t *testing.T) {
	for x, want := range map[float64]float64{0: 0, 1234567: 1230000, 0.123456: 0.123, 99.96: 100, 0.0004: 0, 1: 1, 0.00123: 0.00123} {
		if got := round(x); got != want {
			t.Errorf("round(%v) = %v, want %v", x, got, want)
		}
	}
	for range 1000 {
		x := rand.Float64() * 1e10
		if got := round(x); round(got) != got || len(strings.Trim(strings.ReplaceAll(fmt.Sprintf("%f", got), ".", ""), "0")) > 3 {
			t.Fatalf("round(%v) = %v", x, got)
		}
	}
}

// randomFrames are frames of a fabric in which little changes from one to the next.
func randomFrames(f *Fabric, n int, rng *rand.Rand) (all []*Frame) {
	var m Meter
	s := Sample{At: day, Links: make([]LinkSample, len(f.Links))}
	for range n {
		s.At = s.At.Add(time.Second)
		s.Links = slices.Clone(s.Links)
		for range rng.IntN(5) {
			l := &s.Links[rng.IntN(len(s.Links))]
			l.State = State(rng.IntN(5))
			l.Up = known(l.Up.Bytes+rng.Uint64N(1e6), l.Up.Packets+rng.Uint64N(100), l.Up.Drops+rng.Uint64N(3), rng.Uint64N(9999))
		}
		if rng.IntN(3) == 0 {
			s.Suspects = []Suspect{{Host: "h", Places: []string{f.Links[rng.IntN(len(f.Links))].Name}, Loss: 0.1}}
			s.Failures = []Failure{{"x", fmt.Sprint(rng.IntN(2))}}
			s.Conns = []ConnSample{{From: "h", Local: fmt.Sprint(rng.IntN(2))}}
			s.Ways = []WaySample{{Host: "h", Bounce: "b", Bytes: rng.Uint64N(100)}}
			s.Hosts = []Host{{Name: "h", Verdict: fmt.Sprint(rng.IntN(2))}}
		}
		all = append(all, m.Next(f, s))
	}
	return all
}

// What differs, sent as JSON and applied to the frame before, is the frame.
func TestDelta_roundTrip(t *testing.T) {
	f := fatTree(t, "fat-tree:k=4")
	frames := randomFrames(f, 200, rand.New(rand.NewPCG(1, 2)))
	var shown *Frame
	for i, frame := range frames {
		before := shown
		if i%50 == 0 {
			before = nil // who begins to look
		}
		text, err := json.Marshal(Diff(before, frame))
		if err != nil {
			t.Fatal(err)
		}
		var d Delta
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		if shown, err = d.Apply(before, len(f.Links)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(shown, frame) {
			t.Fatalf("frame %d: applied:\n%+v\nwant:\n%+v", i, shown, frame)
		}
		if before != nil && len(d.Links) > 10 {
			t.Errorf("frame %d: %d links differ, of which at most 5 and their successors have changed", i, len(d.Links))
		}
	}
	if _, err := (&Delta{Seq: 9, Base: 8, Links: nil}).Apply(frames[0], len(f.Links)); err == nil {
		t.Error("a delta to another frame was applied")
	}
	if _, err := (&Delta{Links: []LinkChange{{Link: len(f.Links)}}}).Apply(nil, len(f.Links)); err == nil {
		t.Error("a link that the fabric does not have was changed")
	}
}

func FuzzDelta(f *testing.F) {
	fab := fatTree(f, "fat-tree:k=2")
	for _, frame := range randomFrames(fab, 3, rand.New(rand.NewPCG(3, 4))) {
		text, _ := json.Marshal(Diff(nil, frame))
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var d Delta
		if json.Unmarshal(text, &d) != nil {
			return
		}
		frame, err := d.Apply(nil, len(fab.Links))
		if err != nil {
			return
		}
		again, err := json.Marshal(Diff(nil, frame))
		if err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(again, &d) != nil {
			t.Fatalf("cannot be read again: %s", again)
		}
	})
}

func TestRing(t *testing.T) {
	r := Ring{For: 10 * time.Second}
	frame := func(i int) *Frame {
		return &Frame{Seq: uint64(i), At: day.Add(time.Duration(i) * time.Second), Fabric: 1}
	}
	if r.Latest() != nil || r.Frame(1) != nil || r.At(day) != nil {
		t.Error("an empty ring has frames")
	}
	for i := 1; i <= 30; i++ {
		r.Add(frame(i))
	}
	if r.Len() != 11 || r.Latest().Seq != 30 || r.Frame(19) != nil || r.Frame(20).Seq != 20 || r.Evicted() != 0 {
		t.Errorf("%d frames up to %d, %d evicted", r.Len(), r.Latest().Seq, r.Evicted())
	}
	for at, want := range map[time.Duration]uint64{0: 20, 25 * time.Second: 25, 25*time.Second + 1: 25, time.Hour: 30} {
		if got := r.At(day.Add(at)).Seq; got != want {
			t.Errorf("at %v is frame %d, want %d", at, got, want)
		}
	}
	if s := r.Summaries(); len(s) != 11 || s[0].Seq != 20 {
		t.Errorf("summaries %v", s)
	}
	r.Bytes = 3 * frame(1).size()
	r.Add(frame(31))
	if r.Len() != 3 || r.Evicted() != 8 || r.bytes != 3*frame(1).size() { // 20 was old
		t.Errorf("%d frames of %d bytes, %d evicted; want 3 and 8", r.Len(), r.bytes, r.Evicted())
	}
	other := frame(32)
	other.Fabric = 2
	if r.Add(other); r.Len() != 1 {
		t.Errorf("%d frames of two fabrics", r.Len())
	}
}

// Paths are the topology's own. In a VL2 they are more: a virtual spine is one of several there.
func TestFabric_paths(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4", "leaf-spine:leaves=3,spines=4,hosts=2"} {
		top, err := topology.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		f := fatTree(t, spec)
		for src := range top.Hosts() {
			for dst := range top.Hosts() {
				var want, got []string
				set := top.Paths(src.ID, dst.ID)
				switch {
				case src.ID == dst.ID:
				case set.Direct():
					up := top.Ports(src.ID)[0]
					want = append(want, fmt.Sprint([]int{int(up.Link), int(top.Ports(dst.ID)[0].Link)}, int(up.Peer)))
				default:
					for n := range set.Count() {
						var links []int
						for _, l := range set.Path(n).Links {
							links = append(links, int(l))
						}
						want = append(want, fmt.Sprint(links, int(set.Bounce(n))))
					}
				}
				for _, p := range f.Paths(int(src.ID), int(dst.ID)) {
					got = append(got, fmt.Sprint(p.Links, p.Bounce))
				}
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Fatalf("%s: %s to %s: paths %v, want %v", spec, src.Name, dst.Name, got, want)
				}
			}
		}
	}
	if f := fatTree(t, "fat-tree:k=4"); len(f.Paths(-1, 3)) != 0 || len(f.Paths(0, 999)) != 0 {
		t.Error("there are paths to no node")
	}
}

func TestBundle(t *testing.T) {
	f := fatTree(t, "fat-tree:k=8")
	b := Bundle(f)
	if err := b.Fabric.Check(); err != nil {
		t.Fatal(err)
	}
	// 8 pods of 3 tiers, 4 groups of cores; hosts to edge, edge to aggregation, aggregation to 4 groups.
	if n, l := len(b.Fabric.Nodes), len(b.Fabric.Links); n != 8*3+4 || l != 8*2+8*4 {
		t.Errorf("%d nodes and %d links, want 28 and 48", n, l)
	}
	members, rate := 0, 0.0
	for _, l := range b.Fabric.Links {
		members += l.Members
		rate += l.Rate
	}
	if members != len(f.Links) || rate != 20e6*float64(members) {
		t.Errorf("%d links of %v bit/s, want %d", members, rate, len(f.Links))
	}
	frame := &Frame{Links: make([]LinkFrame, len(f.Links))}
	for i := range frame.Links {
		frame.Links[i] = LinkFrame{State: Working, Up: Flow{Rate: 1e6, Use: 0.05, Drops: 1}}
	}
	frame.Links[5].State, frame.Links[5].Up.Use = Broken, 0.9
	small := b.Frame(frame)
	if s := small.Links[b.Links[5]]; s.State != Suspected || s.Bad != 1 || s.Up.Use != 0.9 || s.Up.Rate != 16e6 || s.Up.Drops != 16 {
		t.Errorf("a bundle of 16 of which one is down is %+v", s)
	}
	for i := range frame.Links {
		if b.Links[i] == b.Links[5] {
			frame.Links[i].State = Broken
		}
	}
	if s := b.Frame(frame).Links[b.Links[5]]; s.State != Broken || s.Bad != 16 {
		t.Errorf("a bundle that is down is %+v", s)
	}
}

func BenchmarkFrame(b *testing.B) {
	for _, spec := range []string{"fat-tree:k=4", "fat-tree:k=8", "fat-tree:k=24"} {
		f := fatTree(b, spec)
		b.Run(spec, func(b *testing.B) {
			var m Meter
			var bundling *Bundling
			if len(f.Links) > MaxDrawn {
				bundling = Bundle(f)
			}
			var before *Frame
			bytes := 0
			sent, rng := make([]LinkSample, len(f.Links)), rand.New(rand.NewPCG(5, 6))
			for i := range b.N {
				at := day.Add(time.Duration(i) * time.Second)
				for j := range sent { // every link is busy, and differs in every frame
					l := &sent[j]
					l.State = Working
					l.Up = known(l.Up.Bytes+rng.Uint64N(2.5e6), l.Up.Packets+1000, l.Up.Drops, rng.Uint64N(75000))
					l.Down = known(l.Down.Bytes+rng.Uint64N(2.5e6), l.Down.Packets+1000, l.Down.Drops, rng.Uint64N(75000))
				}
				s := Sample{At: at, Links: slices.Clone(sent)}
				frame := m.Next(f, s)
				if bundling != nil {
					frame = bundling.Frame(frame)
				}
				text, err := json.Marshal(Diff(before, frame))
				if err != nil {
					b.Fatal(err)
				}
				before, bytes = frame, bytes+len(text)
			}
			b.ReportMetric(float64(bytes)/float64(b.N), "bytes/frame")
		})
	}
}
