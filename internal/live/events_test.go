package live

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// A link that drops now and then is told of once, and again after it was quiet.
func TestMeter_dropsAreToldOnce(t *testing.T) {
	f := fatTree(t, "fat-tree:k=2")
	var m Meter
	var drops uint64
	var told []int
	for second := range 100 {
		if second%5 == 0 && (second < 20 || second > 70) {
			drops++
		}
		s := Sample{At: day.Add(time.Duration(second) * time.Second), Links: make([]LinkSample, len(f.Links))}
		s.Links[1].Up = known(uint64(second), uint64(second), drops, 0)
		for _, e := range m.Next(f, s).Events {
			if e.Kind == EventDrops && e.What == f.Links[1].Name {
				told = append(told, second)
			}
		}
	}
	if want := []int{5, 75}; !slices.Equal(told, want) {
		t.Errorf("told at %v, want %v", told, want)
	}
}

// What a daemon or a name says is bounded, and counts for the ring's bytes.
func TestMeter_longTexts(t *testing.T) {
	f := fatTree(t, "fat-tree:k=2")
	long := strings.Repeat("x\x1b", 1<<20)
	s := Sample{At: day, Links: make([]LinkSample, len(f.Links)), Hosts: []Host{{long, long, long, long}}, Conns: []ConnSample{{From: long, To: long, Local: long, Remote: long, State: long}},
		Suspects: []Suspect{{Host: long, Places: slices.Repeat([]string{long}, 1000), Why: long}}, Ways: []WaySample{{Host: long, Bounce: long, Uplink: long, State: long, Why: long}}}
	text, err := json.Marshal(new(Meter).Next(f, s))
	if err != nil || len(text) > 1<<16 || strings.Contains(string(text), "u001b") {
		t.Errorf("a frame of %d bytes, %v", len(text), err)
	}
	if strings.Count(s.Hosts[0].Name, "x") != 1<<20 {
		t.Error("the sample was changed")
	}
	small := Frame{}
	if big := (&Frame{Hosts: []Host{{Why: strings.Repeat("x", 5000)}}}); big.size()-small.size() < 5000 {
		t.Errorf("a frame with a text of 5,000 bytes counts %d bytes more", big.size()-small.size())
	}
	f.Nodes[0].Name = strings.Repeat("x", maxText+1)
	if err := f.Check(); err == nil {
		t.Error("a fabric with a long name")
	}
	f.Nodes[0].Name = "a\nb"
	if err := f.Check(); err == nil {
		t.Error("a name of two lines")
	}
}
