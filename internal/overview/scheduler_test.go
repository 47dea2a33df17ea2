package overview

import (
	"slices"
	"strings"
	"testing"
)

// Host and switch tell what is pinned, and why nothing is.
func TestScheduler_isTold(t *testing.T) {
	for _, c := range []struct {
		status, problem string
	}{
		{`{"scheduler": {"leader": "10.0.0.9:9341", "elephants": 3, "pins": 2}}`, ""},
		{`{"scheduler": {"leader": "", "elephants": 3, "pins": 2}}`, "no scheduler leads"},
		{`{"scheduler": {"leader": "x", "elephants": 3, "pins": 2, "error": "no map"}}`, "not scheduled: no map"},
	} {
		s, err := ParseSwitch([]byte(c.status))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(s.about(), "3 elephants, 2 pinned") {
			t.Errorf("%s: about is %q", c.status, s.about())
		}
		h := Host{Scheduler: s.Scheduler}
		for name, all := range map[string][]Problem{"switch": s.problems(nil), "host": h.problems(nil)} {
			told := func(p Problem) bool {
				return strings.Contains(p.What, "schedule") && strings.Contains(p.What, c.problem)
			}
			if slices.ContainsFunc(all, told) != (c.problem != "") {
				t.Errorf("%s, %s: %+v", name, c.status, all)
			}
		}
	}
}
