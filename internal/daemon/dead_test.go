package daemon

import (
	"slices"
	"testing"

	"weft/liveness"
	"weft/topology"
)

// A switch is dead if no link of its to another switch works, and what else is said of these
// links is left out. One that has a link left is not.
func TestWithDead(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	ids := func(names ...string) (list []topology.LinkID) {
		for _, n := range names {
			l, err := top.LinkByName(n)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, l.ID)
		}
		return list
	}
	blame := func(places ...string) BlameStatus { return BlameStatus{Places: places} }
	list := []BlameStatus{blame("a0.3-c2.1"), blame("e0.0-a0.2"), blame("a0.3-c2.2", "a0.3"), blame("a0.3-c2.1", "c2.1")}
	whole := []string{"e0.0-a0.3", "e0.1-a0.3", "a0.3-c2.1", "a0.3-c2.2"}
	names := func(list []BlameStatus) (names []string) {
		for _, b := range list {
			names = append(names, b.Places[0])
		}
		return names
	}
	down := top.Without(ids(whole...)...)
	if got := names(withDead(down, slices.Clone(list))); !slices.Equal(got, []string{"a0.3", "e0.0-a0.2", "a0.3-c2.1"}) {
		t.Errorf("all links are down: %v", got)
	}
	if got := names(withDead(top.Without(ids(whole[1:]...)...), slices.Clone(list))); !slices.Equal(got, names(list)) {
		t.Errorf("a link is left: %v", got)
	}
	// An edge switch's hosts are seen by nobody.
	if got := names(withDead(top.Without(ids("e1.0-a1.2", "e1.0-a1.3")...), nil)); !slices.Equal(got, []string{"e1.0"}) {
		t.Errorf("the links up of an edge switch are down: %v", got)
	}
}

// Losses one by one count as many as they are, and a burst of them as about one.
func TestLatelyOf_bursts(t *testing.T) {
	for _, test := range []struct {
		of   liveness.Lately
		want Lately
	}{
		{liveness.Lately{Sent: 800, Lost: 20, Squares: 20, Slots: 100}, Lately{800, 20, 20}},
		{liveness.Lately{Sent: 800, Lost: 20, Squares: 400, Slots: 100}, Lately{800, 20, 1}},
		{liveness.Lately{Sent: 800, Slots: 100}, Lately{800, 0, 0}},
		{liveness.Lately{}, Lately{}},
	} {
		if got := latelyOf(test.of); got != test.want {
			t.Errorf("%+v: %+v, want %+v", test.of, got, test.want)
		}
	}
}
