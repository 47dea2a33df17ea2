package named

import (
	"slices"
	"strings"
	"testing"
)

func same(s string) string { return s }

var all = []string{"ecmp", "drb", "presto"}

func TestSelect(t *testing.T) {
	for _, c := range []struct {
		names, chosen, kept  string
		notSelected, notKept string
	}{
		{"", "", "ecmp drb presto", "", ""},
		{"presto ecmp", "presto ecmp", "ecmp presto", "", ""},
		{"drb pigeon", "", "", `row "pigeon": unknown; known: ecmp, drb, presto`, `row "pigeon": unknown; known: ecmp, drb, presto`},
		{"drb ecmp drb", "", "ecmp drb", `row "drb" is there twice; leave one out`, ""},
	} {
		names := strings.Fields(c.names)
		chosen, err := Select("row", all, same, names)
		if text := errorText(err); text != c.notSelected || !slices.Equal(chosen, strings.Fields(c.chosen)) {
			t.Errorf("Select(%q): %q, %q", c.names, chosen, text)
		}
		kept, err := Keep("row", all, same, names)
		if text := errorText(err); text != c.notKept || !slices.Equal(kept, strings.Fields(c.kept)) {
			t.Errorf("Keep(%q): %q, %q", c.names, kept, text)
		}
	}
	if !slices.Equal(all, []string{"ecmp", "drb", "presto"}) {
		t.Errorf("changed what was given: %q", all)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
