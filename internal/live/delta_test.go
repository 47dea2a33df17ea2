package live

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

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
