package reorder

import (
	"strings"
	"testing"
)

func TestTake(t *testing.T) {
	in := inOrder(1, 4, nil)
	for _, c := range []struct {
		name      string
		ordered   bool
		delivered []int
		want      string // of the error; empty for none
		behind    int
	}{
		{"in order", true, []int{0, 1, 2}, "", 0},
		{"out of order", true, []int{0, 2, 1}, "segment 1 of flow 0 after segment 2", 0},
		{"out of order where it may be", false, []int{2, 0, 1}, "", 2},
		{"twice", false, []int{0, 1, 1}, "packet 1 twice", 0},
		{"before it came", false, []int{0, 3}, "packet 3, of 3 pushed", 0},
		{"invented", false, []int{-1}, "packet -1", 0},
		{"missing", true, []int{0, 2}, "packet 1 was pushed and never delivered", 0},
	} {
		k := newChecker(in, 1, c.ordered)
		err := k.take(c.delivered, 3)
		if err == nil {
			err = k.end(3)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
		if err == nil && (k.outOfOrder != c.behind || k.delivered != 3) {
			t.Errorf("%s: %d of %d out of order, want %d of 3", c.name, k.outOfOrder, k.delivered, c.behind)
		}
	}
}
