package dataplane

import (
	"fmt"
	"slices"
	"testing"
)

// What goes past the reader, because it is too far away or because the reader has had enough, is
// neither lost nor doubled, and leaves the rest in order, in all ways there are.
func TestHandover_pastTheReader(t *testing.T) {
	check := func(arrivals []int, spare int, follows bool) error {
		whole := append([]int{0}, arrivals...)
		slices.Sort(whole)
		_, err := explore(func(c *choices) error {
			s := newTwoSides(c, arrivals...)
			s.spare, s.followsStrays = spare, follows
			s.run(0)
			top := 0
			for _, n := range s.kernel {
				if n < stray && n > top+1 && spare < 0 {
					return fmt.Errorf("%v arrive: the kernel gets %v; choices %v", arrivals, s.kernel, c.trail)
				}
				if n < stray {
					top = max(top, n)
				}
			}
			if !slices.Equal(s.all(), whole) || s.diverted != s.returned || len(s.handover.flows) > 0 ||
				s.next > uint32(top)+1 || spare < 0 && s.next != uint32(top)+1 {
				return fmt.Errorf("%v arrive, %d may be diverted: the kernel has %v; %d of %d are returned, next is %d; choices %v",
					arrivals, spare, s.kernel, s.returned, s.diverted, s.next, c.trail)
			}
			return nil
		})
		return err
	}
	found := false
	for _, arrivals := range permutations([]int{1, 2, 3, 4, stray}) {
		if err := check(arrivals, -1, false); err != nil {
			t.Fatal(err)
		}
		found = found || check(arrivals, -1, true) != nil
	}
	if !found {
		t.Error("not found: a stray moves the flow")
	}
	for _, arrivals := range permutations([]int{1, 2, 3, 4, 5}) {
		for spare := range 4 {
			if err := check(arrivals, spare, false); err != nil {
				t.Fatal(err)
			}
		}
	}
}
