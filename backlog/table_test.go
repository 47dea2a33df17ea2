package backlog

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

const rack = 7

var four = []int{0, 1, 2, 3}

func newTable(t testing.TB, c Config) *Table {
	t.Helper()
	table, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestNew_badConfigNamesTheField(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string // empty: fine
	}{
		{Config{}, ""},
		{Config{Samples: MaxSamples, Memory: MaxMemory, RateBits: 1, MaxDestinations: 1}, ""},
		{Config{Samples: -1}, "Samples is -1: give 1 to 36"},
		{Config{Samples: 37}, "Samples is 37"},
		{Config{Memory: -1}, "Memory is -1: give 1 to 4"},
		{Config{Memory: 5}, "Memory is 5"},
		{Config{RateBits: -8}, "RateBits is -8"},
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

// With as many samples as paths the least loaded is always found.
func TestChoose_leastBacklogOfAll(t *testing.T) {
	for _, c := range []struct {
		backlog [4]int
		paths   []int
		want    []int // each of them at times
	}{
		{[4]int{}, four, four},
		{[4]int{5000, 4000, 3000, 4000}, four, []int{2}},
		{[4]int{5000, 4000, 3000, 3000}, four, []int{2, 3}},
		{[4]int{5000, 4000, 3000, 3000}, []int{0, 1}, []int{1}}, // the best are dead
		{[4]int{5000}, []int{0}, []int{0}},
		{[4]int{0, 9, 9, 9}, []int{1, 2, 2, 2, 3}, []int{1, 2, 3}}, // by weight
	} {
		table := newTable(t, Config{Samples: 5, Seed: 1})
		for p, n := range c.backlog {
			table.Sent(rack, p, n, 0)
		}
		seen := map[int]int{}
		for range 300 {
			seen[table.Choose(rack, c.paths, 0)]++
		}
		for _, p := range c.want {
			if seen[p] < 300/len(c.want)/3 {
				t.Errorf("%v: path %d is chosen %d times of 300", c.backlog, p, seen[p])
			}
			delete(seen, p)
		}
		if len(seen) > 0 {
			t.Errorf("%v: chosen as well: %v", c.backlog, seen)
		}
	}
	if p := newTable(t, Config{}).Choose(rack, nil, 0); p != -1 {
		t.Errorf("of no paths %d is chosen", p)
	}
}

// The path remembered is found again though it is not among the samples, as
// long as it is live.
func TestChoose_remembers(t *testing.T) {
	paths := make([]int, 1000)
	for p := range paths {
		paths[p] = p
	}
	for _, memory := range []int{1, 2, MaxMemory} {
		table := newTable(t, Config{Memory: memory, Seed: 1})
		for p := range paths {
			table.Sent(rack, p, 1000, 0)
		}
		for best := range memory { // so many are better than all others
			table.buckets.list[best].bytes = float64(best)
			table.rooms[0].paths[best] = int32(best)
		}
		table.rooms[0].n, table.rooms[0].dst = int32(memory), rack
		for range 20 {
			if p := table.Choose(rack, paths, 0); p != 0 {
				t.Fatalf("%d remembered: path %d rather than 0", memory, p)
			}
		}
		// Where the best is dead, the second best is remembered, if there is room.
		if p := table.Choose(rack, paths[1:], 0); (p == 1) != (memory > 1) || p == 0 {
			t.Errorf("%d remembered: path %d after 0 is dead", memory, p)
		}
		if n := int(table.rooms[0].n); n > memory || slices.Contains(table.rooms[0].paths[:n], 0) {
			t.Errorf("%d remembered: now it is %v", memory, table.rooms[0].paths[:n])
		}
	}
}

// An idle host must not keep to the path that it remembers.
func TestChoose_idleIsRandom(t *testing.T) {
	table := newTable(t, Config{Seed: 1})
	var n [4]int
	for range 4000 {
		n[table.Choose(rack, four, 0)]++
	}
	for p, x := range n {
		if x < 850 || x > 1150 {
			t.Errorf("path %d is chosen %d times of 4000", p, x)
		}
	}
}

func TestBacklog_leaksAtTheHostsShare(t *testing.T) {
	const mbit8 = 8e6 // a byte a microsecond
	table := newTable(t, Config{RateBits: mbit8})
	table.Sent(rack, 0, 1000, 0)
	left := func(want int, at time.Duration) {
		t.Helper()
		if got := int(table.buckets.left(0, at)); got < want-1 || got > want+1 {
			t.Errorf("%d bytes left at %v, want %d", got, at, want)
		}
	}
	left(1000, 0)
	left(900, 100*time.Microsecond) // no more than one path is known
	table.Choose(rack, four, 200*time.Microsecond)
	left(800, 200*time.Microsecond)
	left(700, 600*time.Microsecond)                                         // a quarter now
	table.Choose(rack, []int{0, 0, 0, 0, 0, 1, 2, 3}, 600*time.Microsecond) // no more paths, by weight
	table.Choose(rack, []int{0, 1}, 600*time.Microsecond)                   // fewer
	table.Choose(rack, []int{3, 7}, 1000*time.Microsecond)                  // more, of which most are dead
	left(600, 1000*time.Microsecond)
	left(500, 1800*time.Microsecond)
	table.Sent(rack, 0, 1000, time.Millisecond) // a clock that goes back
	left(1500, 1800*time.Microsecond)
	left(0, time.Second)
	table.Sent(rack, 0, 10<<20, time.Second)
	left(deepest, time.Second)
	left(deepest, 0)
}

func TestTable_isBounded(t *testing.T) {
	table := newTable(t, Config{MaxDestinations: 100})
	table.Choose(rack, []int{1 << 20}, 0)
	for i := range 100_000 {
		dst := uint32(i) * 2654435761
		table.Choose(dst, []int{i, i + 1, i + 2}, time.Duration(i))
		table.Sent(dst, i, 1000, time.Duration(i))
		table.Sent(dst, -i, 1000, time.Duration(i))
	}
	if len(table.rooms) != 128 || len(table.buckets.list) > MaxPaths || table.buckets.paths > MaxPaths {
		t.Errorf("%d rooms, %d buckets", len(table.rooms), len(table.buckets.list))
	}
	if n := table.Evicted(); n < 90_000 || n > 100_000 {
		t.Errorf("%d evicted", n)
	}
	// As many racks as there are rooms have one each, if their numbers follow each
	// other.
	table = newTable(t, Config{MaxDestinations: 128})
	for i := range uint32(10_000) {
		table.Choose(1000+i%128, four, 0)
	}
	if n := table.Evicted(); n != 0 || len(table.rooms) != 128 {
		t.Errorf("%d evicted, %d rooms", n, len(table.rooms))
	}
}
