package reorder

import (
	"slices"
	"testing"
	"time"
)

// pushAt gives s the packets of in from one place up to another at a time of
// its own, and returns what comes out.
func pushAt(s subject, in []arrival, from, to int, now time.Duration) []int {
	b := newBatch(false)
	b.fill(in, from, to)
	b.now = now
	s.prepare(b)
	s.push(b)
	names, _, _ := s.collect(b)
	return slices.Clone(names)
}

func TestSortedList_holdsUntilFilledOrTimedOut(t *testing.T) {
	in := []arrival{{segment: 0}, {segment: 3}, {segment: 2}, {segment: 1}, {segment: 6}, {segment: 8}, {segment: 7}, {segment: 4}}
	s := newSortedList()
	for _, step := range []struct {
		from, to int
		now      time.Duration
		want     []int
	}{
		{0, 3, 0, []int{0}},
		{3, 4, 1 * time.Millisecond, []int{3, 2, 1}},
		{4, 6, 2 * time.Millisecond, nil},
		{6, 7, 12*time.Millisecond - 1, nil},
		{7, 7, 12 * time.Millisecond, []int{4, 6, 5}}, // 5 is given up
		{7, 8, 13 * time.Millisecond, []int{7}},
	} {
		if got := pushAt(s, in, step.from, step.to, step.now); !slices.Equal(got, step.want) {
			t.Errorf("packets %d to %d at %v: delivers %v, want %v", step.from, step.to, step.now, got, step.want)
		}
	}
	if held, err := s.state(); held != 3*packetSize || err != nil || s.held != 0 || len(s.holding) != 0 {
		t.Errorf("held %d bytes at most, holds %d; %v", held, s.held, err)
	}
}
