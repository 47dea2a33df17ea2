package listen

import (
	"strings"
	"testing"
	"time"
)

// Silence is told before what was heard loses its value, and not while switches may only be
// between two of their messages, nor if the cable explains it.
func TestSilent(t *testing.T) {
	const maxAge = 20 * time.Second
	for _, test := range []struct {
		heard   time.Duration
		carrier bool
		want    bool
	}{{0, true, false}, {5 * time.Second, true, false}, {9 * time.Second, true, true}, {time.Hour, true, true}, {time.Hour, false, false}} {
		if got := silent(test.heard, maxAge, test.carrier, "e0.0"); (got != "") != test.want || test.want && !(strings.Contains(got, "UDP port 9338") && strings.Contains(got, "at e0.0, the next switch")) {
			t.Errorf("heard %v ago, carrier %v: %q", test.heard, test.carrier, got)
		}
	}
}
