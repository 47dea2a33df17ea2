package failover

import (
	"slices"
	"testing"
	"time"
)

func TestSeries_isBytesByTime(t *testing.T) {
	start := time.Unix(50, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	s := &series{start: start, samples: []sample{
		{start, []int64{0, 0, 7}},
		{at(100), []int64{100_000, 25_000, 7}},
		{at(200), []int64{100_000, 50_000, 7}},
		{at(400), []int64{100_000, 100_000, 7}},
	}}
	want := []point{{100 * time.Millisecond, 10}, {200 * time.Millisecond, 2}, {400 * time.Millisecond, 2}}
	if got := s.points(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := s.between(at(-1), at(250)); got != 6 {
		t.Errorf("%v Mbit/s in the first 200 ms", got)
	}
	if got := s.between(at(150), at(250)); got != 0 {
		t.Errorf("%v Mbit/s from one sample", got)
	}
	if got := s.idle(at(100), at(400)); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("idle %v", got)
	}
	if got := s.idle(at(0), at(400)); !slices.Equal(got, []int{2}) {
		t.Errorf("idle %v", got)
	}
}
