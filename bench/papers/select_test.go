package papers

import (
	"strings"
	"testing"
)

func named(names ...string) (all []Experiment) {
	for _, n := range names {
		all = append(all, Experiment{Name: n})
	}
	return all
}

func names(all []Experiment) string {
	var l []string
	for _, e := range all {
		l = append(l, e.Name)
	}
	return strings.Join(l, " ")
}

func TestSelect(t *testing.T) {
	all := named("drb-5.5", "drb-f10", "drb-f11", "luopan-t1")
	for args, want := range map[string]string{
		"all":             "drb-5.5 drb-f10 drb-f11 luopan-t1",
		"drb-*":           "drb-5.5 drb-f10 drb-f11",
		"luopan-t1 drb-*": "drb-5.5 drb-f10 drb-f11 luopan-t1",
		"drb-f11 drb-f11": "drb-f11",
		"drb-f1? *t1":     "drb-f10 drb-f11 luopan-t1",
	} {
		got, err := Select(all, strings.Fields(args))
		if err != nil || names(got) != want {
			t.Errorf("%s: %s, %v, want %s", args, names(got), err, want)
		}
	}
	for arg, want := range map[string]string{
		"drb-f1":   `"drb-f1": unknown; near it: drb-f10, drb-f11, drb-5.5`,
		"drb-f":    "near it: drb-f10, drb-f11, drb-5.5",
		"drb-f21":  "near it: drb-f11, drb-f10, drb-5.5",
		"lupan-t1": "near it: luopan-t1",
		"luopan-x": "near it: luopan-t1",
		"xyz":      "weft sim list shows all",
		"x*":       "weft sim list shows all",
		"[":        "syntax error in pattern",
	} {
		if _, err := Select(all, []string{"drb-f10", arg}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
}
