package live

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
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
