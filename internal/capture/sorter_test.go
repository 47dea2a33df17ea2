package capture

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// What comes up to Window late leaves in the order of its time, and all of it leaves.
func TestSorter_restoresTheOrder(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := Sorter{Window: 100 * time.Millisecond}
		var got []time.Time
		emit := func(r *Record) { got = append(got, r.At) }
		now := start
		for range 500 {
			now = now.Add(time.Duration(r.IntN(10)) * time.Millisecond)
			s.Add(Record{At: now.Add(-time.Duration(r.IntN(99)) * time.Millisecond)}, emit)
			s.Due(now, emit)
		}
		s.Flush(emit)
		if len(got) != 500 || !slices.IsSortedFunc(got, time.Time.Compare) || s.Early() != 0 {
			t.Fatalf("seed %d: %d records, sorted %t", seed, len(got), slices.IsSortedFunc(got, time.Time.Compare))
		}
	}
	s, n := Sorter{Window: time.Hour, Most: 10}, 0
	for range 25 {
		s.Add(Record{At: start}, func(*Record) { n++ })
	}
	if n != 15 || s.Early() != 15 {
		t.Errorf("%d left early, %d counted", n, s.Early())
	}
	s, n = Sorter{Window: time.Hour, MostBytes: 1000}, 0
	for range 25 {
		s.Add(Record{At: start, Bytes: make([]byte, 100)}, func(*Record) { n++ })
	}
	if n != 15 {
		t.Errorf("%d left early for their bytes", n)
	}
}

func TestFilter(t *testing.T) {
	b := tcp(here, there, 1, 100, 65)
	n := NewAnnotator(nil).Note(&Record{Bytes: b, Length: len(b)})
	flow, err := ParseFlow("10.3.1.3:80-10.0.0.2:40000")
	if err != nil {
		t.Fatal(err)
	}
	other, err := ParseFlow("10.3.1.3:80-10.0.0.2:40001")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		f    Filter
		want bool
	}{
		{Filter{}, true},
		{Filter{Hosts: []netip.Addr{there}}, true},
		{Filter{Hosts: []netip.Addr{netip.MustParseAddr("10.1.1.3")}}, false},
		{Filter{Ports: []uint16{80}}, true},
		{Filter{Ports: []uint16{81}}, false},
		{Filter{Flow: &flow}, true},
		{Filter{Flow: &other}, false},
		{Filter{Kinds: []Kind{KindData}}, true},
		{Filter{Kinds: []Kind{KindProbe}, Ports: []uint16{80}}, false},
	} {
		if got := c.f.Match(&n); got != c.want {
			t.Errorf("filter %d: %t, want %t", i, got, c.want)
		}
	}
	for _, bad := range []string{"", "10.0.0.2:1", "10.0.0.2:1-x", "10.0.0.2-10.0.0.3"} {
		if _, err := ParseFlow(bad); err == nil || !strings.Contains(err.Error(), "10.0.0.2:40000-") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := ParseKind("nosuch"); err == nil || !strings.Contains(err.Error(), "probe") {
		t.Error(err)
	}
}
