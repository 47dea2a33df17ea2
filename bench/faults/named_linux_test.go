package faults

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A cause is named by what is wrong and where, not by advice, nor by a list of all that it may be.
func TestFault_Named(t *testing.T) {
	link := Fault{Cause: Cause{{"answered"}}, At: []string{"e3.1-a3.2"}}
	mute := Fault{Cause: Cause{{"decapsulat"}, {"boomerang"}, {"outer header"}}, At: []string{"c1.1"}}
	all := Fault{Cause: Cause{{"outer header"}}, At: []string{"c1.1", "c1.2", "c2.1", "c2.2"}}
	here := Fault{Cause: Cause{{"rp_filter"}}}
	const guesses = "link e0.0-a0.2 (probes not answered, though its switches hear each other: one of them does not take outer headers off, filters protocol 4, does not forward, or has a strict rp_filter)"
	for _, test := range []struct {
		name     string
		f        Fault
		sentence string
		want     bool
	}{
		{"the link", link, "! link e3.1-a3.2, as h3.1.3 alone says (probes not answered)", true},
		{"its end alone", link, "! switch a3.2 (probes not answered)", false},
		{"another link at it", link, "! link e3.0-a3.2 (probes not answered)", false},
		{"a link whose name begins so", link, "link e3.1-a3.21 (probes not answered)", false},
		{"three links", link, "links e3.1-a3.2, e0.0-a0.2, e0.0-a0.3 (probes not answered)", true},
		{"too many links", link, "links e3.1-a3.2, e0.0-a0.2, e0.0-a0.3, e0.1-a0.2 (probes not answered)", false},
		{"the switch", mute, "not by c1.1: no boomerang comes home from there", true},
		{"its link alone", mute, "not by a0.2-c1.1: no boomerang comes home from there", false},
		{"many racks, one switch", mute, "racks e1.0, e1.1, e2.0, e2.1 are not reached by all paths: not by c1.1: no boomerang", true},
		{"too many switches", mute, "not by c1.1, c1.2, c2.1, c2.2: no boomerang comes home from there", false},
		{"as many as are broken", all, "c1.1, c1.2, c2.1, c2.2: outer headers are not taken off", true},
		{"all guesses", here, guesses, false},
		{"one of the guesses", here, "a strict rp_filter drops what comes home", true},
		{"two of them", here, "ip_forward is off or rp_filter is strict", true},
		{"an Oxford comma", here, "a, b, rp_filter, or d", false},
	} {
		if got := test.f.Named(Said{First: test.sentence, Cause: test.sentence}); got != test.want {
			t.Errorf("%s: %v: %s", test.name, got, test.sentence)
		}
	}
	s, err := Status.said("host 10.0.0.2: DEGRADED, x\nabout\n\n! x\n  do: sysctl rp_filter\n", nil, nil)
	if err != nil || here.Named(s) || !strings.Contains(s.First, "rp_filter") {
		t.Errorf("advice counts: %+v, %v", s, err)
	}
}

// The table says what was asked late.
func TestPrint_fabric(t *testing.T) {
	var b strings.Builder
	if err := Print(&b, []Result{{Fault: "x", Told: Fabric, Seconds: 14}, {Fault: "y", Told: Status, Seconds: 1}, {Fault: "z"}}, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "doctor --fabric") || !strings.Contains(got, "2 of 3 faults were named first by a tool, 1 of them by one that was asked for 10s, 1 by doctor --fabric after that") {
		t.Error(got)
	}
	if slices.Contains(Tools(), Fabric) {
		t.Error("the fabric is asked all the time")
	}
}
