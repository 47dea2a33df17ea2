package main

import (
	"slices"
	"testing"
	"time"
)

func TestBenchFCT_bad(t *testing.T) {
	const bench = "bench fct "
	wantError(t, bench+"--topology ring", "--topology", "ring")
	wantError(t, bench+"--rows best", "--rows", `"best"`, "kernel-ecmp")
	wantError(t, bench+"--rows=", "rows")
	wantError(t, bench+"--rate 0", "--rate=0")
	wantError(t, bench+"--workload mine", `"mine"`, "websearch_dctcp")
	wantError(t, bench+"--traffic all", `"all"`, "random, permutation")
	wantError(t, bench+"--loads 0.5,heavy", "--loads", `"heavy"`)
	wantError(t, bench+"--loads 1.5", "loads", "1.5")
	wantError(t, bench+"--seeds 0", "seeds 0")
	wantError(t, bench+"--scale 0", "scale 0")
	wantError(t, bench+"--duration 0s", "duration")
	wantError(t, bench+"--drain 0s", "drain 0s")
	wantError(t, bench+"--flowcell 1", "--flowcell")
	wantError(t, bench+"--rows drb,drb", "--rows", "twice")
	wantError(t, bench+"--name abcdefghijklm", "--name", "at most 12")
	wantError(t, bench+"--name abcdefghijkl --rows drb,switch-drill", "--name", "abcdefghijkl0", "at most 12")
	wantError(t, bench+"--rows switch-letflow:gap=0s", "--rows", "switch-letflow:gap=0s", "gap is")
}

func TestBenchFCT_quickYieldsToFlags(t *testing.T) {
	o := benchFCTOptions{loads: []string{"0.8"}}
	o.Seeds, o.Duration = 3, time.Minute
	o.shorten(func(flag string) bool { return flag == "loads" })
	if !slices.Equal(o.loads, []string{"0.8"}) || o.Seeds != 1 || o.Duration != 2*time.Second {
		t.Errorf("%+v", o)
	}
}
