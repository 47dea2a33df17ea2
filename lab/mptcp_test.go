package lab

import (
	"strings"
	"testing"
)

// Connections that end before they have all subflows are no fault, whatever else is.
func TestSubflowCounts_lacking(t *testing.T) {
	for _, c := range []struct {
		counts SubflowCounts
		want   []string // nil: nothing
	}{
		{SubflowCounts{}, nil},
		{SubflowCounts{Connections: 10, Opened: 70}, nil},
		{SubflowCounts{Connections: 10, Opened: 3, Ended: 9}, nil},
		{SubflowCounts{Connections: 10, Opened: 63, Lost: 2}, []string{"lost 2 times"}},
		{SubflowCounts{Connections: 10, Opened: 63, Refused: 1}, []string{"refused", "1 connections"}},
		{SubflowCounts{Connections: 10, Ended: 10}, []string{"none of 10"}},
		{SubflowCounts{Connections: 10, Refused: 10, Lost: 1}, []string{"lost 1 times", "refused"}},
	} {
		got := c.counts.Lacking()
		if (got == "") != (c.want == nil) {
			t.Errorf("%+v: %q", c.counts, got)
		}
		for _, word := range c.want {
			if !strings.Contains(got, word) {
				t.Errorf("%+v: no %q in %q", c.counts, word, got)
			}
		}
	}
	a, b := SubflowCounts{1, 2, 3, 4, 5}, SubflowCounts{10, 20, 30, 40, 50}
	if sum := a.Add(b); sum != (SubflowCounts{11, 22, 33, 44, 55}) || sum.Since(b) != a {
		t.Errorf("%+v", sum)
	}
}
