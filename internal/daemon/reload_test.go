package daemon

import (
	"strings"
	"testing"
)

func TestCanBecome_namesWhatNeedsARestart(t *testing.T) {
	base, err := parse("topology: fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"mode: offload":                   "f:1: mode: cannot change",
		"\nresequencer: {hold: 11ms}":     "f:2: resequencer: cannot change",
		"mtu: 1400":                       "f:1: mtu: cannot change",
		"user: daemon":                    "f:1: user: cannot change",
		"policy: ecmp":                    "",
		"policy: conga":                   "",
		"samples: 3\nexpiry: 1ms":         "",
		"encapsulation: srv6":             "f:1: encapsulation: cannot change while the daemon runs; restart it",
		"topology: fat-tree:k=8":          "",
		"flowcell_bytes: 4096\ndrain: 1s": "",
	} {
		next, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		err = base.canBecome(next)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
