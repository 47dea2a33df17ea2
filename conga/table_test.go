package conga

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	theRack = 7
	ms      = time.Millisecond
)

var four = []int{0, 1, 2, 3}

func asTag(path int) uint8 { return uint8(path) }

func newTable(t testing.TB, c Config) *Table {
	t.Helper()
	table, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// busy makes the local metric of a tag what it is to be.
func busy(table *Table, tag, metric uint8, now time.Duration) {
	for table.local[tag].Metric(now) < metric {
		table.Sent(tag, 1000, now)
	}
}

func TestNew_badConfigNamesTheField(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string // empty: fine
	}{
		{Config{}, ""},
		{Config{Tau: time.Microsecond, Age: time.Microsecond, RateBits: 8e6, MaxDestinations: 1}, ""},
		{Config{Tau: 30 * ms}, ""}, // Age follows
		{Config{Tau: 999}, "Tau is 999ns: give 1µs to 10s"},
		{Config{Tau: -1}, "Tau is -1ns"},
		{Config{Tau: 11 * time.Second}, "Tau is 11s"},
		{Config{Age: time.Microsecond}, "Age is 1µs: give Tau, 160µs, to 10m0s"},
		{Config{Age: time.Hour}, "Age is 1h0m0s"},
		{Config{RateBits: -1}, "RateBits is -1"},
		{Config{RateBits: math.NaN()}, "RateBits is NaN"},
		{Config{RateBits: math.Inf(1)}, "RateBits is +Inf"},
		{Config{MaxDestinations: -1}, "MaxDestinations is -1: give 1 to 1048576"},
		{Config{MaxDestinations: 1<<20 + 1}, "MaxDestinations is 1048577"},
	} {
		_, err := New(c.config)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.want)
		}
	}
}

// Each case has the local and the remote metrics of four paths (CONGA §3.5).
func TestChoose_leastOfTheLargerOfTwo(t *testing.T) {
	for _, c := range []struct {
		name          string
		local, remote [4]uint8
		paths         []int
		last          int
		want          []int // any of these, and each of them at times
	}{
		{"nothing known", [4]uint8{}, [4]uint8{}, four, -1, four},
		{"nothing known, last", [4]uint8{}, [4]uint8{}, four, 2, []int{2}},
		{"remote decides", [4]uint8{}, [4]uint8{5, 3, 4, 7}, four, -1, []int{1}},
		{"local decides", [4]uint8{5, 3, 4, 7}, [4]uint8{}, four, -1, []int{1}},
		{"the larger counts", [4]uint8{0, 7, 3, 4}, [4]uint8{7, 0, 4, 2}, four, -1, []int{2, 3}},
		{"strictly better: it moves", [4]uint8{}, [4]uint8{3, 3, 2, 3}, four, 0, []int{2}},
		{"equal: it stays", [4]uint8{}, [4]uint8{2, 3, 2, 3}, four, 2, []int{2}},
		{"last is dead", [4]uint8{}, [4]uint8{2, 3, 2, 3}, []int{0, 1, 3}, 2, []int{0}},
		{"the best is dead", [4]uint8{}, [4]uint8{2, 1, 7, 1}, []int{0, 2}, -1, []int{0}},
		{"all saturated", [4]uint8{7, 7, 7, 7}, [4]uint8{7, 7, 7, 7}, four, -1, four},
		{"one path", [4]uint8{7}, [4]uint8{7}, []int{3}, 1, []int{3}},
	} {
		table := newTable(t, Config{Seed: 1})
		table.Choose(theRack, four, asTag, -1, 0) // or feedback is refused
		for i := range 4 {
			busy(table, uint8(i), c.local[i], 0)
			table.Feedback(theRack, uint8(i), c.remote[i], 0)
		}
		seen := map[int]int{}
		for range 200 {
			seen[table.Choose(theRack, c.paths, asTag, c.last, 0)]++
		}
		for _, p := range c.want {
			if seen[p] < 200/len(c.want)/2 {
				t.Errorf("%s: path %d is chosen %d times of 200", c.name, p, seen[p])
			}
			delete(seen, p)
		}
		if len(seen) > 0 {
			t.Errorf("%s: chosen as well: %v", c.name, seen)
		}
	}
	if p := newTable(t, Config{}).Choose(theRack, nil, asTag, 3, 0); p != -1 {
		t.Errorf("of no paths %d is chosen", p)
	}
}

func TestChoose_racksAreApart(t *testing.T) {
	table := newTable(t, Config{})
	table.Choose(1, four, asTag, -1, 0)
	table.Choose(2, four, asTag, -1, 0)
	for tag := range uint8(3) {
		table.Feedback(1, tag, 7, 0)
	}
	for range 20 {
		if p := table.Choose(1, four, asTag, -1, 0); p != 3 {
			t.Fatalf("path %d to rack 1", p)
		}
		if p := table.Choose(2, four, asTag, 1, 0); p != 1 {
			t.Fatalf("path %d to rack 2", p)
		}
	}
}

// A report counts in full for Age, then it loses 1, and 1 more every eighth.
func TestFeedback_ages(t *testing.T) {
	table := newTable(t, Config{Age: 8 * ms})
	table.Choose(theRack, four, asTag, -1, 0)
	for _, metric := range []uint8{7, 3, 1, 0} {
		table.Feedback(theRack, 0, metric, 0)
		for _, c := range []struct {
			at   time.Duration
			lost uint8
		}{{0, 0}, {ms, 0}, {8 * ms, 0}, {8*ms + 1, 1}, {9*ms - 1, 1}, {9 * ms, 2}, {11 * ms, 4}, {14 * ms, 7}, {16 * ms, 9}, {time.Hour, 99}} {
			want := metric - min(c.lost, metric)
			if got := table.to.get(theRack).remote(0, c.at, 8*ms); got != want {
				t.Errorf("%d after %v is %d, want %d", metric, c.at, got, want)
			}
		}
	}
	// So a path that looked worst is tried again.
	table.Feedback(theRack, 0, 7, 0)
	for tag := range uint8(3) {
		table.Feedback(theRack, 1+tag, 1, 15*ms)
	}
	if p := table.Choose(theRack, four, asTag, 1, 15*ms); p != 0 {
		t.Errorf("path %d after nothing was heard of path 0 for long", p)
	}
	if p := table.Choose(theRack, four, asTag, 1, 13*ms); p != 1 {
		t.Errorf("path %d, too early", p)
	}
}

func TestFeedback_ofStrangersIsRefused(t *testing.T) {
	table := newTable(t, Config{})
	table.Received(theRack, 0, 5, 0) // to hear of somebody is not enough
	table.Feedback(theRack, 0, 7, 0)
	if s := table.Stats(); s != (Stats{Sources: 1, Refused: 1}) {
		t.Errorf("%+v", s)
	}
	table.Choose(theRack, four, asTag, -1, 0)
	table.Feedback(theRack, 16, 200, 0) // out of range
	if s := table.Stats(); s.Destinations != 1 || s.Refused != 1 {
		t.Errorf("%+v", s)
	}
	want := []TagUse{{Tag: 0, Remote: 7, Age: ms}}
	if got := table.Destinations(ms)[0].Tags; !slices.Equal(withoutChosen(got), want) {
		t.Errorf("%+v", got)
	}
}

// withoutChosen leaves out what was only chosen.
func withoutChosen(uses []TagUse) (reported []TagUse) {
	for _, u := range uses {
		if u.Age >= 0 {
			u.Chosen = 0
			reported = append(reported, u)
		}
	}
	return reported
}

type report struct {
	tag, metric uint8
	ok          bool
}

func next(table *Table, now time.Duration) report {
	tag, metric, ok := table.NextFeedback(theRack, now)
	return report{tag, metric, ok}
}

func TestNextFeedback_roundRobinChangedFirst(t *testing.T) {
	table := newTable(t, Config{})
	expect := func(what string, want ...report) {
		t.Helper()
		for i, w := range append(want, report{}) {
			if got := next(table, 0); got != w {
				t.Errorf("%s, %d: %+v, want %+v", what, i, got, w)
			}
		}
	}
	expect("of a stranger")
	table.Received(theRack, 5, 3, 0)
	table.Received(theRack, 2, 0, 0)
	table.Received(theRack, 15, 1, 0)
	table.Received(theRack, 5, 4, 0) // the latest counts
	expect("all are new", report{2, 0, true}, report{5, 4, true}, report{15, 1, true})
	table.Received(theRack, 2, 0, 0)
	table.Received(theRack, 5, 4, 0)
	table.Received(theRack, 15, 2, 0)
	expect("one has changed", report{15, 2, true}, report{2, 0, true}, report{5, 4, true})
	table.Received(theRack, 2, 0, 0)
	table.Received(theRack, 5, 4, 0)
	table.Received(theRack, 15, 2, 0)
	expect("none has changed", report{15, 2, true}, report{2, 0, true}, report{5, 4, true})
	table.Received(theRack, 2, 7, 0)
	table.Received(theRack, 2, 0, 0) // what was reported last
	table.Received(theRack, 3, 1, 0)
	expect("one has changed back", report{3, 1, true}, report{2, 0, true})
}

// Or a sender who has left a path would hear of it forever, and never come back.
func TestNextFeedback_repeatsNothingAndForgets(t *testing.T) {
	table := newTable(t, Config{Age: 10 * ms})
	table.Received(theRack, 1, 7, 0)
	if got := next(table, 10*ms); got != (report{1, 7, true}) {
		t.Errorf("at Age: %+v", got)
	}
	if got := next(table, 10*ms); got != (report{}) {
		t.Errorf("again: %+v", got)
	}
	table.Received(theRack, 1, 7, 20*ms)
	if got := next(table, 30*ms+1); got != (report{}) {
		t.Errorf("after Age: %+v", got)
	}
	table.Received(theRack, 1, 7, 40*ms)
	if got := next(table, 40*ms); got != (report{1, 7, true}) {
		t.Errorf("heard of again: %+v", got)
	}
}

func TestTable_isBounded(t *testing.T) {
	table := newTable(t, Config{MaxDestinations: 64})
	for i := range uint32(1000) {
		now := time.Duration(i)
		table.Choose(i, four, asTag, -1, now)
		table.Received(i, 1, 1, now)
		table.Choose(5, four, asTag, -1, now) // one that is never idle
	}
	s := table.Stats()
	// Rack 5 is made once by each; all others that are not there were evicted.
	if s.Destinations != 64 || s.Sources != 64 || s.Evicted != 2*(1000-64) {
		t.Errorf("%+v", s)
	}
	if len(table.to.index) != 64 || len(table.from.index) != 64 {
		t.Errorf("%d and %d racks are found", len(table.to.index), len(table.from.index))
	}
	for id, i := range table.to.index {
		if table.to.entries[i].id != id {
			t.Errorf("rack %d is in the place of %d", id, table.to.entries[i].id)
		}
	}
	if table.to.get(5) == nil {
		t.Error("the busiest rack was forgotten")
	}
	if table.to.get(999) == nil || table.to.get(500) != nil {
		t.Error("the latest rack was forgotten rather than an idle one")
	}
}

func TestDestinations_sayWhatIsKnown(t *testing.T) {
	table := newTable(t, Config{})
	table.Choose(theRack, []int{2}, asTag, -1, 0)
	table.Choose(theRack, []int{2}, asTag, -1, 0)
	table.Choose(9, []int{1}, asTag, -1, 0)
	busy(table, 2, 3, 0)
	table.Feedback(theRack, 4, 5, 0)
	got := table.Destinations(0)
	if len(got) != 2 || got[0].Destination != theRack || got[1].Destination != 9 {
		t.Fatalf("%+v", got)
	}
	want := []TagUse{{Tag: 2, Local: 3, Age: -1, Chosen: 2}, {Tag: 4, Remote: 5}}
	if !slices.Equal(got[0].Tags, want) {
		t.Errorf("%+v, want %+v", got[0].Tags, want)
	}
}
