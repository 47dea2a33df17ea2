package daemon

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestCanBecome_namesWhatNeedsARestart(t *testing.T) {
	base, err := parseText("topology: fat-tree:k=4")
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
		"policy: drb\ngroups: true":       "",
		"samples_only: true\ntau: 1ms":    "",
		"encapsulation: srv6":             "f:1: encapsulation: cannot change while the daemon runs; restart it",
		"topology: fat-tree:k=8":          "",
		"flowcell_bytes: 4096\ndrain: 1s": "",
		"congestion_control: reno\ncongestion_control_prefixes: [10.1.0.0/16]": "",
	} {
		next, err := parseText(text)
		if err != nil {
			t.Fatal(err)
		}
		err = base.canBecome(next)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Of a tunnel's peers only keys change, where there are any.
func TestCanBecome_keysOfPeers(t *testing.T) {
	secret := func(c string) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(c, 32))) }
	config := func(peer string) string {
		return "encapsulation: udp\nudp:\n  name: a\n  peers:\n  - {name: b, prefixes: [10.9.0.2/32], endpoint: \"192.0.2.1:1\"" + peer + "}\n"
	}
	keyed, plain := ", key: "+secret("k"), ""
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{keyed, keyed + ", accept_key: " + secret("n") + ", accept_key_id: 1", true},
		{keyed, ", key: " + secret("n") + ", key_id: 1, accept_key: " + secret("k"), true},
		{keyed, ", key: " + secret("n") + ", key_id: 1", true},
		{keyed, plain, false},
		{plain, keyed, false},
		{plain, plain + ", name: c", false},
	} {
		from, err := parseText(config(c.from))
		if err != nil {
			t.Fatal(err)
		}
		text := config(c.to)
		if strings.Contains(c.to, "name: c") {
			text = strings.Replace(config(""), "name: b", "name: c", 1)
		}
		to, err := parseText(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := from.canBecome(to); (err == nil) != c.ok {
			t.Errorf("%q to %q: %v", c.from, c.to, err)
		}
	}
}
