package live

import (
	"slices"
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
