package config

import (
	"strings"
	"testing"
)

// slow tries everything.
func slow(a, b string) int {
	switch {
	case a == "" || b == "":
		return len(a) + len(b)
	case a[0] == b[0]:
		return slow(a[1:], b[1:])
	}
	return 1 + min(slow(a[1:], b), slow(a, b[1:]), slow(a[1:], b[1:]))
}

func TestDistance(t *testing.T) {
	words := []string{"", "kitten", "sitting", "a", "drb-f6", "drb-f9", "rdb-f6", "luopan", "lupoan", "äöü", "hold", "holdd"}
	for _, a := range words {
		for _, b := range words {
			if got, want := Distance(a, b), slow(a, b); got != want {
				t.Errorf("%q, %q: %d, want %d", a, b, got, want)
			}
		}
	}
	if got := Distance(strings.Repeat("a", 1<<20), "b"); got != maxWord {
		t.Errorf("a long word: %d, want %d", got, maxWord)
	}
}
