package live

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

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

// A clock that jumps makes no rate that is not so: back, none is known; forward, the time counts.
// What is kept stays bounded.
func TestMeter_clockJumps(t *testing.T) {
	f := fatTree(t, "fat-tree:k=2")
	var m Meter
	r := Ring{For: time.Minute}
	at, bytes := day, uint64(0)
	for i := range 300 {
		switch i {
		case 100:
			at = at.Add(-time.Hour)
		case 200:
			at = at.Add(2 * time.Hour)
		}
		at, bytes = at.Add(time.Second), bytes+1e6/8
		s := Sample{At: at, Links: make([]LinkSample, len(f.Links))}
		s.Links[0].Up = known(bytes, 1, 0, 0)
		frame := m.Next(f, s)
		want := 1e6
		switch i {
		case 0, 100:
			want = 0
		case 200:
			want = 139 // in two hours and a second
		}
		if got := frame.Links[0].Up.Rate; got != want || frame.Seconds < 0 {
			t.Errorf("frame %d: %v bit/s in %v s, want %v", i, got, frame.Seconds, want)
		}
		r.Add(frame)
		if r.Latest() != frame || r.Len() > KeepFrames {
			t.Fatalf("frame %d is not kept, or %d are", i, r.Len())
		}
	}
	if n := r.Len(); n != 61 {
		t.Errorf("%d frames of a minute", n)
	}
}
