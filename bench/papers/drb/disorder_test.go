package drb

import (
	"slices"
	"testing"
	"time"
)

// Packets arrive in the order 3, 0, 1, 2, 4: the first is three ahead, and three others are
// each behind it.
func TestDisorder(t *testing.T) {
	for degree, want := range map[string][]int{
		byExtent:       {0, 1, 2, 3, 0},
		byDisplacement: {3, 1, 1, 1, 0},
		byGap:          {3, 0, 0, 0, 0},
		byLag:          {0, 3, 2, 1, 0},
		byOccupancy:    {1, 1, 1, 0, 0},
	} {
		var got []int
		a := arrivals{ahead: make(map[int]bool)}
		for _, sent := range []int{3, 0, 1, 2, 4} {
			got = append(got, a.arrived(sent, degree))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", degree, got, want)
		}
	}
}

// What arrives before the end of the warmup is not counted, but known; each flow has its own.
func TestDisorder_countsAfterWarmup(t *testing.T) {
	d := newDisorder(byExtent, time.Second)
	d.arrived(0, 1, 1)
	d.arrived(time.Second, 2, 0)
	d.arrived(time.Second, 1, 0)
	if got := d.share(1); got != 50 {
		t.Errorf("%v %% are behind 1 or more, want 50: one of two", got)
	}
}

// A packet that never comes does not keep all later ones in memory.
func TestDisorder_bounded(t *testing.T) {
	a := arrivals{ahead: make(map[int]bool)}
	for sent := range 5 * farthest {
		a.arrived(sent+1, byOccupancy)
	}
	if len(a.ahead) > farthest || len(a.records) > 2*farthest {
		t.Errorf("%d packets and %d records are kept", len(a.ahead), len(a.records))
	}
}
