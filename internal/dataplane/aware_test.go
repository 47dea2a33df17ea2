package dataplane

import (
	"testing"
	"time"

	"weft/policy"
	"weft/topology"
)

// The options of sampling and of CONGA's estimator reach the tables.
func TestAwareConfig_options(t *testing.T) {
	fabric, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	table := func(name string, o policy.Options) aware {
		t.Helper()
		p, err := policy.New(name, o)
		if err != nil {
			t.Fatal(err)
		}
		a, err := awareConfig{policy: p, options: o, seed: 1}.in(fabric, 0)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, only := range []bool{false, true} {
		s := table("luopan", policy.Options{SamplesOnly: only}).(*sampled)
		counts, paths := [4]int{}, []int{0, 1, 2, 3}
		for range 400 { // which no sample decides on
			path, _ := s.table.Choose(7, 1, paths, time.Second)
			counts[path]++
		}
		even := counts == [4]int{100, 100, 100, 100}
		if even == only {
			t.Errorf("SamplesOnly %v: unsampled flowcells took the paths %v times; in turn they are even, at random not", only, counts)
		}
	}
	for tau, want := range map[time.Duration]uint8{0: uint8(time.Second / (80 * time.Microsecond) % 64), 100 * time.Millisecond: 20} {
		i := table("conga", policy.Options{Tau: tau}).(*informed)
		if got := i.table.Tick(time.Second); got != want {
			t.Errorf("Tau %v: tick %d after a second, want %d", tau, got, want)
		}
	}
}
