package daemon

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"weft/liveness"
	"weft/topology"
)

// What late ways have in common, and others do not, is late.
func TestLater(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	self, _ := top.Lookup("h0.0.2")
	far, _ := top.Lookup("h3.1.3")
	set := top.Paths(self.ID, far.ID)
	const usual = 200 * time.Microsecond
	health := func(more map[string]time.Duration) (paths []liveness.PathHealth) {
		for n := range set.Count() {
			via, _ := top.ByAddr(set.Addr(n))
			paths = append(paths, liveness.PathHealth{Dst: self.Addr, Path: n, Via: set.Addr(n), State: liveness.Up,
				RTTLeast: usual + more[top.Node(via).Name]})
		}
		return paths
	}
	const late = 2 * time.Millisecond
	for _, test := range []struct {
		name   string
		more   map[string]time.Duration
		places []string // nil: nothing is late
		by     []string
	}{
		{"nothing", nil, nil, nil},
		{"a core", map[string]time.Duration{"c1.2": late}, []string{"a0.2-c1.2", "c1.2"}, []string{"c1.2"}},
		{"little", map[string]time.Duration{"c1.2": 100 * time.Microsecond}, nil, nil},
		{"an aggregation switch", map[string]time.Duration{"c1.1": late, "c1.2": late}, []string{"e0.0-a0.2", "a0.2"}, []string{"c1.1", "c1.2"}},
		{"more than half", map[string]time.Duration{"c1.1": late, "c1.2": late, "c2.1": late}, nil, nil},
	} {
		got := later(top, self.Addr, health(test.more))
		switch {
		case test.by == nil && got != nil, test.by != nil && got == nil:
			t.Errorf("%s: %+v", test.name, got)
		case got != nil && (!slices.Equal(got.Places, test.places) || !slices.Equal(got.By, test.by) || got.Took != 2.2 || got.Others != 0.2):
			t.Errorf("%s: %+v", test.name, got)
		}
	}
	// "At least" is true of all of them, and what is told is bounded and the same each time.
	if got := later(top, self.Addr, health(map[string]time.Duration{"c1.1": late, "c1.2": 2 * late})); got == nil || got.Took != 2.2 {
		t.Errorf("two late ways: %+v", got)
	}
	few := health(map[string]time.Duration{"c1.2": late})
	for i := range few {
		if via, _ := top.ByAddr(few[i].Via); top.Node(via).Name == "c1.2" {
			few[i].State = liveness.Slow // which says more
		}
	}
	if got := later(top, self.Addr, few); got != nil {
		t.Errorf("a slow path is called late: %+v", got)
	}
}

// What is told is bounded, names each switch once, and does not change by itself.
func TestLater_many(t *testing.T) {
	top, err := topology.Parse("leaf-spine:leaves=3,spines=40,hosts=2")
	if err != nil {
		t.Fatal(err)
	}
	self, _ := top.Lookup("h0.0.2")
	far, _ := top.Lookup("h0.1.2")
	set := top.Paths(self.ID, far.ID)
	var paths []liveness.PathHealth
	for n := range set.Count() {
		rtt := 200 * time.Microsecond
		if n < 15 {
			rtt = 3 * time.Millisecond
		}
		for range 2 { // as by two uplinks
			paths = append(paths, liveness.PathHealth{Dst: self.Addr, Path: n, Via: set.Addr(n), State: liveness.Up, RTTLeast: rtt})
		}
	}
	got := later(top, self.Addr, paths)
	if got == nil || len(got.By) != maxLate || got.Unsaid != 15-maxLate || len(got.Places) > maxLate || !slices.IsSorted(got.By) || len(slices.Compact(slices.Clone(got.By))) != maxLate {
		t.Errorf("%+v", got)
	}
	fat, err := topology.Parse("fat-tree:k=8")
	if err != nil {
		t.Fatal(err)
	}
	self, _ = fat.Lookup("h0.0.2")
	paths = nil
	for _, dst := range []string{"h0.1.2", "h3.1.3"} { // ways of two layers
		to, _ := fat.Lookup(dst)
		set := fat.Paths(self.ID, to.ID)
		for n := range set.Count() {
			rtt := 200 * time.Microsecond
			if n == 0 {
				rtt = 3 * time.Millisecond
			}
			paths = append(paths, liveness.PathHealth{Dst: self.Addr, Path: n, Via: set.Addr(n), State: liveness.Up, RTTLeast: rtt})
		}
	}
	first := later(fat, self.Addr, paths)
	if first == nil || len(first.By) != 2 {
		t.Fatalf("%+v", first)
	}
	for range 50 {
		if again := later(fat, self.Addr, paths); !reflect.DeepEqual(again, first) {
			t.Fatalf("%+v, then %+v", first, again)
		}
	}
}
