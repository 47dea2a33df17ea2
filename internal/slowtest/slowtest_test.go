package slowtest

import "testing"

func TestLevels(t *testing.T) {
	for _, c := range []struct {
		level                  string
		system, unraced, longs bool
	}{
		{"", false, false, false},
		{"unraced", false, true, false},
		{"all", true, true, false},
		{"long", true, true, true},
		{"no such level", false, false, false},
	} {
		t.Setenv(variable, c.level)
		ran := func(skip func(testing.TB)) (ran bool) {
			t.Run(c.level, func(t *testing.T) {
				skip(t)
				ran = true
			})
			return ran
		}
		if got := ran(System); got != c.system {
			t.Errorf("%q: a test of a whole system runs: %v", c.level, got)
		}
		if got := ran(Unraced); got != (c.unraced && !testing.Short()) {
			t.Errorf("%q: a test that is not for the race detector runs: %v", c.level, got)
		}
		if got := ran(func(t testing.TB) { Release(t, "TestOther", "more") }); got != c.longs {
			t.Errorf("%q: a test for releases runs: %v", c.level, got)
		}
		if Long() != c.longs || Choose(1, 2) != map[bool]int{false: 1, true: 2}[c.longs] {
			t.Errorf("%q: long is %v", c.level, Long())
		}
	}
}
