package doctor

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// What other machines say cannot command a terminal, nor look like lines of doctor's own.
func TestText_printable(t *testing.T) {
	bad := "x\x1b[2J\u202e\x9b\ny"
	text := Text("x", []Finding{{Node: bad, Check: bad, Cause: bad, Fix: bad}, {Check: bad, OK: true, Skipped: bad}})
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 || strings.Count(text, "\ny") != 0 {
		t.Errorf("%q", text)
	}
	if !strings.Contains(text, `x\x1b[2J\u202e`) {
		t.Errorf("%q", text)
	}
}

// Findings keep their order when they have been JSON in between.
func TestSort_throughJSON(t *testing.T) {
	for _, c := range faults(t) {
		f := c.base()
		c.spoil(f)
		all := Examine(f)
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		var back []Finding
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if back[i].Weight != all[i].Weight || !all[i].OK && all[i].Weight == "" {
				t.Errorf("%s: %+v became %+v", c.check, all[i], back[i])
			}
		}
	}
	if all := Merge([]Finding{{Check: "a", Weight: slows}}, []Finding{{Check: "b", Weight: "unknown"}}, []Finding{{Check: "c", Weight: stops}}); all[0].Check != "c" || all[1].Check != "b" {
		t.Errorf("%+v", all)
	}
}
